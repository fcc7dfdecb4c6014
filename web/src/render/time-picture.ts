// A chart over time as a picture, from the same description as the painted chart. Pure.
import { at } from '../base/columns';
import { ticks } from '../base/ticks';
import { countColumns, FEW_MARKS, SHADES, shades } from '../model/mark-density';
import { outline, splitAtGaps, stepOutline, type LegendEntry, type Outline, type Picture, type Shape } from './picture';
import type { ChartSpec } from './chart-spec';

/** Of many marks. */
const DENSITY_COLUMNS = 500;
const TICKS = { x: 10, y: 7 } as const;

/** The highest drawn value; 1 without one, because it is a divisor. */
function highestOf(spec: ChartSpec): number {
  let highest = 0;
  for (const values of [...spec.areas.map((area) => area.edge), ...spec.lines.map((line) => line.values)]) {
    for (const value of values) {
      highest = Math.max(highest, value ?? 0);
    }
  }
  return highest > 0 ? highest : 1;
}

/** Many marks are shades at the top of the plot; the main ones are drawn as others are. */
function density(spec: ChartSpec, toX: number): readonly Shape[] {
  const others = spec.marks.filter((mark) => mark.isMain !== true);
  const counts = countColumns(others.map((mark) => mark.ms), toX, DENSITY_COLUMNS);
  return [
    ...shades(counts).flatMap((shade, column): readonly Shape[] =>
      shade === 0
        ? []
        : [{ kind: 'bar', x: column / DENSITY_COLUMNS, width: 1 / DENSITY_COLUMNS, y: 0.98, height: 0.02, colour: spec.ink.mark, opacity: shade / SHADES }],
    ),
    ...spec.marks.filter((mark) => mark.isMain === true).map((mark): Shape => ({ kind: 'mark', x: mark.ms / toX, label: mark.label })),
  ];
}

export function timePicture(spec: ChartSpec, title: string, legend: readonly LegendEntry[], background: string): Picture {
  const toX = Math.max(at(spec.timesMs, spec.timesMs.length - 1), 1);
  const toY = highestOf(spec) * 1.04;
  const pieces = (values: readonly (number | null)[], hasGaps = false): readonly Outline[] =>
    (hasGaps ? splitAtGaps(values) : [values]).map((piece) => outline(spec.timesMs, piece, toX, toY, spec.isStepped));
  const { marked } = spec;
  return {
    title,
    legend,
    x: ticks(toX, TICKS.x, 'time').map((ms) => ({ at: ms / toX, label: spec.formatTime(ms) })),
    y: ticks(toY, TICKS.y, spec.isBinary ? 'binary' : 'decimal').map((value) => ({ at: value / toY, label: spec.formatValue(value) })),
    shapes: [
      // The highest edge first, so that each lower area covers its own part.
      ...[...spec.areas].reverse().flatMap((area) => (area.isStep === true ? [stepOutline(spec.timesMs, area.edge, toX, toY)] : pieces(area.edge, area.hasGaps)).map((points): Shape => ({ kind: 'area', points, colour: area.colour }))),
      ...spec.lines.flatMap((line) =>
        pieces(line.values, line.hasGaps).map((points): Shape => ({ kind: 'line', points, colour: line.colour, width: line.width, dash: (line.dash ?? []).join(' ') })),
      ),
      ...(marked === null
        ? []
        : [{ kind: 'bar', x: marked.fromMs / toX, width: (marked.toMs - marked.fromMs) / toX, y: 0, height: 1, colour: spec.ink.mark, opacity: 0.2 } as const]),
      ...(spec.marks.length > FEW_MARKS ? density(spec, toX) : spec.marks.map((mark): Shape => ({ kind: 'mark', x: mark.ms / toX, label: mark.label }))),
    ],
    ink: { text: spec.ink.text, grid: spec.ink.grid, mark: spec.ink.mark, background },
  };
}
