// Sizes and lifetimes together: a cell for each pair of buckets, darker for more blocks.
import type { JSX } from 'preact';
import { sizeLifetime } from '../api/answers';
import type { Decoded } from '../api/decode';
import { at, range } from '../base/columns';
import { formatCount, formatCountOf, formatPercent } from '../base/format';
import { errorBeside } from '../model/cost';
import type { Picture } from '../render/picture';
import { bound, rangeText } from './histogram';
import { PictureButtons } from './parts/picture-buttons';
import { cssVariable } from './parts/theme-hook';

type HeatAnswer = Decoded<typeof sizeLifetime>;

const LABELS = { x: 12, y: 9 } as const;

interface Heat {
  readonly answer: HeatAnswer;
  readonly columns: number;
  readonly rows: number;
  /** The blocks of each cell, certain and estimated together. */
  readonly values: readonly number[];
  readonly highest: number;
}

function heatOf(answer: HeatAnswer): Heat {
  const values = answer.cells.size.map((_, i) => at(answer.cells.blocks, i) + at(answer.cells.estimated_blocks, i));
  return {
    answer,
    columns: Math.max(answer.sizes.low.length, 1),
    rows: Math.max(answer.lifetimes.low.length, 1),
    values,
    highest: Math.max(1, ...values),
  };
}

/** Logarithmic: a cell with one block must be visible beside one with a million. */
function opacity(heat: Heat, value: number): number {
  return value <= 0 ? 0 : 0.12 + 0.88 * (Math.log1p(value) / Math.log1p(heat.highest));
}

function cellTitle(heat: Heat, cell: number): string {
  const { sizes, lifetimes, cells } = heat.answer;
  const size = at(cells.size, cell);
  const lifetime = at(cells.lifetime, cell);
  return (
    `${rangeText('bytes', at(sizes.low, size), at(sizes.high, size))}, lived ${rangeText('ms', at(lifetimes.low, lifetime), at(lifetimes.high, lifetime))}: ` +
    `${formatCountOf(at(heat.values, cell), 'block')}${errorBeside(at(heat.values, cell), cells.error?.[cell])}, ${formatCount(at(cells.blocks, cell))} of them certain`
  );
}

interface Label {
  readonly at: number;
  readonly label: string;
}

/** Lower bounds of some buckets, at their middles. */
function labels(lows: readonly number[], unit: string, most: number): readonly Label[] {
  const each = Math.max(1, Math.ceil(lows.length / most));
  return lows.flatMap((low, place) => (place % each === 0 ? [{ at: (place + 0.5) / lows.length, label: bound(unit, low) }] : []));
}

function heatPicture(heat: Heat): Picture {
  const { cells, sizes, lifetimes } = heat.answer;
  const colour = cssVariable('--accent');
  return {
    title: 'Blocks by size (to the right) and lifetime (upwards), a stronger colour is more, logarithmic',
    shapes: heat.values.map((value, i) => ({
      kind: 'bar',
      x: at(cells.size, i) / heat.columns,
      width: 0.96 / heat.columns,
      y: at(cells.lifetime, i) / heat.rows,
      height: 0.96 / heat.rows,
      colour,
      opacity: opacity(heat, value),
    })),
    x: labels(sizes.low, 'bytes', LABELS.x),
    y: labels(lifetimes.low, 'ms', LABELS.y),
    legend: [{ colour, text: `${formatCountOf(heat.highest, 'block')} in the darkest cell` }],
    ink: { text: cssVariable('--text'), grid: cssVariable('--line'), mark: cssVariable('--text-soft'), background: cssVariable('--bg') },
  };
}

function Scale(props: { readonly heat: Heat }): JSX.Element {
  const { heat } = props;
  const steps = [...new Set(range(6).map((i) => Math.round(Math.expm1((Math.log1p(heat.highest) * (i + 1)) / 6))))].filter((value) => value > 0);
  return (
    <span class="heat-scale" aria-label="Scale">
      {steps.map((value) => (
        <span key={value}>
          <span class="heat-swatch" style={{ opacity: opacity(heat, value).toFixed(3) }} /> {formatCount(value)}
        </span>
      ))}
      blocks
    </span>
  );
}

export function HeatMap(props: { readonly answer: HeatAnswer }): JSX.Element {
  const heat = heatOf(props.answer);
  const { sizes, lifetimes, cells, certain_blocks, total_blocks } = props.answer;
  return (
    <>
      <p class="soft">
        {`${formatPercent(certain_blocks, total_blocks)} of the blocks are placed with certainty; the rest is spread as if size and lifetime were independent within a stack. Sizes to the right, lifetimes upwards, a stronger colour is more (logarithmic).`}
      </p>
      <div class="heat">
        <div class="heat-y" aria-hidden="true">
          {labels(lifetimes.low, 'ms', LABELS.y).map((label) => (
            <span key={label.at} style={{ bottom: `${(label.at * 100).toFixed(2)}%` }}>
              {label.label}
            </span>
          ))}
        </div>
        <div class="heat-plot">
          <div role="img" aria-label="Heat map of sizes and lifetimes" data-testid="heat">
            <svg viewBox={`0 0 ${heat.columns} ${heat.rows}`} preserveAspectRatio="none">
              {heat.values.map((value, i) => (
                <rect key={i} class="heat-cell" x={at(cells.size, i) + 0.03} y={heat.rows - 1 - at(cells.lifetime, i) + 0.03} width={0.94} height={0.94} fill-opacity={opacity(heat, value)}>
                  <title>{cellTitle(heat, i)}</title>
                </rect>
              ))}
            </svg>
          </div>
          <div class="bars-axis" aria-hidden="true">
            {labels(sizes.low, 'bytes', LABELS.x).map((label) => (
              <span key={label.at} style={{ left: `${(label.at * 100).toFixed(2)}%` }}>
                {label.label}
              </span>
            ))}
          </div>
        </div>
      </div>
      <div class="toolbar">
        <Scale heat={heat} />
        <PictureButtons name="size_lifetime" picture={() => heatPicture(heat)} />
      </div>
    </>
  );
}
