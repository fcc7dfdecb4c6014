// Charts as SVG documents, for export: a frame with axes, a title and a legend, and the plot
// inside. Pure.
//
// Coordinates: plotted values are shares of the plot, x from the left and y from below, both 0 to
// 1. Names are hostile: all text passes `escapeXml` and occurs only in text elements; colours are
// the page's own.
import { at } from '../base/columns';
import { escapeXml } from './flame/svg';

export interface Tick {
  readonly at: number;
  readonly label: string;
}

export interface LegendEntry {
  readonly colour: string;
  readonly text: string;
}

export type Shape =
  | { readonly kind: 'bar'; readonly x: number; readonly width: number; readonly y: number; readonly height: number; readonly colour: string; readonly opacity: number }
  | { readonly kind: 'line'; readonly points: readonly (readonly [number, number])[]; readonly colour: string; readonly width: number; readonly dash: string }
  | { readonly kind: 'area'; readonly points: readonly (readonly [number, number])[]; readonly colour: string }
  | { readonly kind: 'mark'; readonly x: number; readonly label: string };

export interface Picture {
  readonly title: string;
  readonly shapes: readonly Shape[];
  readonly x: readonly Tick[];
  readonly y: readonly Tick[];
  readonly legend: readonly LegendEntry[];
  readonly ink: { readonly text: string; readonly grid: string; readonly mark: string; readonly background: string };
}

export const PICTURE_WIDTH_PX = 1200;
const PLOT = { left: 90, top: 46, width: 1070, height: 420 } as const;
const LEGEND_TOP_PX = PLOT.top + PLOT.height + 56;
const LEGEND_ROW_PX = 20;

function px(share: number, from: number, length: number): string {
  return (from + share * length).toFixed(2);
}

const xPx = (share: number): string => px(share, PLOT.left, PLOT.width);
const yPx = (share: number): string => px(1 - share, PLOT.top, PLOT.height);

function text(x: number | string, y: number | string, anchor: string, fill: string, content: string): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${fill}">${escapeXml(content)}</text>`;
}

function path(points: readonly (readonly [number, number])[]): string {
  return points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${xPx(x)} ${yPx(y)}`).join('');
}

function shapeSvg(shape: Shape, ink: Picture['ink']): string {
  switch (shape.kind) {
    case 'bar':
      return (
        `<rect x="${xPx(shape.x)}" y="${yPx(shape.y + shape.height)}" width="${(shape.width * PLOT.width).toFixed(2)}" ` +
        `height="${(shape.height * PLOT.height).toFixed(2)}" fill="${shape.colour}" fill-opacity="${shape.opacity.toFixed(3)}"/>`
      );
    case 'line':
      return `<path d="${path(shape.points)}" fill="none" stroke="${shape.colour}" stroke-width="${shape.width}" stroke-dasharray="${shape.dash}"/>`;
    case 'area': {
      const first = shape.points[0]?.[0] ?? 0;
      const last = shape.points.at(-1)?.[0] ?? 0;
      return `<path d="${path([[first, 0], ...shape.points, [last, 0]])}Z" fill="${shape.colour}"/>`;
    }
    case 'mark': {
      const isRight = shape.x > 0.5;
      return (
        `<path d="${path([[shape.x, 0], [shape.x, 1]])}" stroke="${ink.mark}" stroke-dasharray="4 4"/>` +
        text(px(shape.x, PLOT.left + (isRight ? -6 : 6), PLOT.width), PLOT.top - 6, isRight ? 'end' : 'start', ink.text, shape.label)
      );
    }
  }
}

function axesSvg(picture: Picture): readonly string[] {
  const { ink } = picture;
  const bottom = PLOT.top + PLOT.height;
  return [
    ...picture.y.map(
      (tick) =>
        `<path d="M${PLOT.left} ${yPx(tick.at)}H${PLOT.left + PLOT.width}" stroke="${ink.grid}"/>` +
        text(PLOT.left - 8, Number(yPx(tick.at)) + 4, 'end', ink.text, tick.label),
    ),
    ...picture.x.map(
      (tick) => `<path d="M${xPx(tick.at)} ${bottom}v5" stroke="${ink.grid}"/>` + text(xPx(tick.at), bottom + 20, 'middle', ink.text, tick.label),
    ),
  ];
}

export function pictureHeightPx(picture: Picture): number {
  return LEGEND_TOP_PX + picture.legend.length * LEGEND_ROW_PX + 10;
}

export function pictureSvg(picture: Picture): string {
  const { ink } = picture;
  const height = pictureHeightPx(picture);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${PICTURE_WIDTH_PX}" height="${height}" viewBox="0 0 ${PICTURE_WIDTH_PX} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escapeXml(picture.title)}</title>`,
    `<rect width="100%" height="100%" fill="${ink.background}"/>`,
    text(PLOT.left, 22, 'start', ink.text, picture.title),
    ...axesSvg(picture),
    ...picture.shapes.map((shape) => shapeSvg(shape, ink)),
    ...picture.legend.map((entry, i) => {
      const y = LEGEND_TOP_PX + i * LEGEND_ROW_PX;
      return `<rect x="${PLOT.left}" y="${y - 10}" width="12" height="12" fill="${entry.colour}"/>${text(PLOT.left + 20, y, 'start', ink.text, entry.text)}`;
    }),
    '</svg>',
  ].join('\n');
}

export type Outline = readonly (readonly [number, number])[];

/** The column once for each run of values without a null between them, with null elsewhere. */
export function splitAtGaps(values: readonly (number | null)[]): readonly (readonly (number | null)[])[] {
  const starts = values.flatMap((value, i) => (value !== null && (values[i - 1] ?? null) === null ? [i] : []));
  return starts.map((start) => {
    const gap = values.indexOf(null, start);
    return values.map((value, i) => (i >= start && (gap < 0 || i < gap) ? value : null));
  });
}

/**
 * The outline of a column: its value at each time, or steps that end there. Shares of `toX` and
 * `toY`.
 */
export function outline(times: readonly number[], values: readonly (number | null)[], toX: number, toY: number, isStepped: boolean): Outline {
  const points: (readonly [number, number])[] = [];
  let before = at(times, 0);
  times.forEach((time, i) => {
    const value = values[i] ?? null;
    if (value === null) {
      return;
    }
    if (isStepped && points.length > 0) {
      points.push([before / toX, value / toY]);
    }
    points.push([time / toX, value / toY]);
    before = time;
  });
  return points;
}

/** The outline of a column whose values hold until the next one. */
export function stepOutline(times: readonly number[], values: readonly (number | null)[], toX: number, toY: number): Outline {
  let level: number | null = null;
  return times.flatMap((time, i): Outline => {
    const before: number | null = level;
    level = values[i] ?? null;
    return level === null ? [] : [...(before === null ? [] : [[time / toX, before / toY] as const]), [time / toX, level / toY] as const];
  });
}
