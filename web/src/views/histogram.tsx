// One histogram: bars stacked by call site, the old recording's as outlines, and the same numbers
// as a table.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Histogram } from '../api/answers';
import { at, range } from '../base/columns';
import { logTicks, ticks } from '../base/ticks';
import { formatBytes, formatCount, formatCountOf, formatCountShort, formatMs } from '../base/format';
import { locationName } from '../model/code';
import { errorBeside } from '../model/cost';
import { barsOf, type Bar } from '../model/histogram';
import { stackUp } from '../model/stacked';
import { palette } from '../render/colour';
import type { Picture, Shape } from '../render/picture';
import { CodeLink } from './parts/code-label';
import { costColumn } from './parts/cost-cell';
import { DataTable, type Column } from './parts/data-table';
import { PictureButtons } from './parts/picture-buttons';
import { cssVariable, useDarkness } from './parts/theme-hook';

export type RankKey = 'blocks' | 'bytes';

const WIDTH = 1000;
const HEIGHT = 320;
const MAX_LABELS = 12;

export interface HistogramModel {
  readonly now: Histogram;
  readonly old: Histogram | null;
  readonly bars: readonly Bar[];
  readonly rank: RankKey;
  /** Heights grow with the logarithm. */
  readonly isLog: boolean;
  readonly highest: number;
  /** Upper edges of the layers, by position in the new recording's columns. */
  readonly edges: readonly (readonly number[])[];
}

export function histogramModel(now: Histogram, old: Histogram | null, rank: RankKey, isLog: boolean): HistogramModel {
  return {
    now,
    old,
    rank,
    isLog,
    bars: barsOf(now.buckets, old?.buckets ?? null),
    highest: Math.max(1, ...now.buckets[rank], ...(old?.buckets[rank] ?? [])),
    edges: stackUp([...now.top.map((entry) => ({ label: '', values: entry[rank] })), { label: '', values: now.rest[rank] }]),
  };
}

export function bound(unit: string, value: number): string {
  return unit === 'bytes' ? formatBytes(value) : formatMs(value);
}

export function rangeText(unit: string, low: number, high: number): string {
  return low === high ? bound(unit, low) : `${bound(unit, low)} to ${bound(unit, high)}`;
}

/** The height of a value, as a share of the highest. */
function heightOf(model: HistogramModel, value: number): number {
  return model.isLog ? Math.log1p(value) / Math.log1p(model.highest) : value / model.highest;
}

function valueIn(answer: Histogram | null, rank: RankKey, row: number | null): number {
  return answer === null || row === null ? 0 : at(answer.buckets[rank], row);
}

function errorIn(answer: Histogram | null, rank: RankKey, row: number | null): number | undefined {
  const errors = answer?.buckets[`${rank}_error`] ?? null;
  return errors === null ? undefined : row === null ? 0 : at(errors, row);
}

function barTitle(model: HistogramModel, bar: Bar): string {
  const { now, old } = model;
  const unsure = (answer: Histogram | null, rank: RankKey, row: number | null): string => errorBeside(valueIn(answer, rank, row), errorIn(answer, rank, row));
  const say = (answer: Histogram | null, row: number | null): string =>
    `${formatCountOf(valueIn(answer, 'blocks', row), 'block')}${unsure(answer, 'blocks', row)}, ${formatBytes(valueIn(answer, 'bytes', row))}${unsure(answer, 'bytes', row)}`;
  const before = old === null ? '' : `; before ${say(old, bar.old)}`;
  return `${rangeText(now.unit, bar.low, bar.high)}: ${say(now, bar.now)}${before}`;
}

/** Lower and upper edge of each layer of a bar that has any. */
function layersOf(model: HistogramModel, bar: Bar): readonly { readonly layer: number; readonly below: number; readonly above: number }[] {
  const { edges } = model;
  const { now } = bar;
  return now === null
    ? []
    : edges
        .map((edge, layer) => ({ layer, below: layer === 0 ? 0 : at(edges[layer - 1], now), above: at(edge, now) }))
        .filter(({ below, above }) => above > below);
}

function OneBar(props: { readonly model: HistogramModel; readonly place: number; readonly step: number }): JSX.Element {
  const { model, place, step } = props;
  const bar = model.bars[place];
  const colours = palette(useDarkness());
  if (bar === undefined) {
    return <g />;
  }
  // The layers of a bar share its height by their values, on both scales.
  const whole = valueIn(model.now, model.rank, bar.now);
  const y = (value: number): number => HEIGHT * (1 - (value / Math.max(whole, 1)) * heightOf(model, whole));
  const oldY = (value: number): number => HEIGHT * (1 - heightOf(model, value));
  const old = valueIn(model.old, model.rank, bar.old);
  return (
    <g>
      <title>{barTitle(model, bar)}</title>
      <rect class="bars-hover" x={place * step} y={0} width={step} height={HEIGHT} />
      {layersOf(model, bar).map(({ layer, below, above }) => (
        <rect
          key={layer}
          x={place * step + step * 0.06}
          width={step * 0.88}
          y={y(above)}
          height={y(below) - y(above)}
          {...(layer === model.now.top.length ? { class: 'bars-rest' } : { fill: colours.series(layer) })}
        />
      ))}
      {old > 0 ? <path class="bars-old" d={`M${place * step} ${HEIGHT}V${oldY(old)}h${step}V${HEIGHT}`} /> : null}
    </g>
  );
}

/** What the heights are, and the highest. */
function topText(model: HistogramModel, format: (value: number) => string): string {
  return `up to ${format(model.highest)}${model.rank === 'blocks' ? ' blocks' : ''}${model.isLog ? ' (log scale)' : ''}`;
}

interface HeightLabel {
  /** A share of the height. */
  readonly at: number;
  readonly label: string;
}

function heightLabels(model: HistogramModel): readonly HeightLabel[] {
  const { highest, rank, isLog } = model;
  const format = rank === 'blocks' ? formatCountShort : formatBytes;
  const values = (isLog ? logTicks : ticks)(highest, 6, rank === 'bytes' ? 'binary' : 'decimal');
  return values.map((value) => ({ at: heightOf(model, value), label: format(value) }));
}

export function Bars(props: { readonly model: HistogramModel }): JSX.Element {
  const { model } = props;
  const count = model.bars.length;
  const format = model.rank === 'blocks' ? formatCount : formatBytes;
  const short = model.rank === 'blocks' ? formatCountShort : formatBytes;
  const each = Math.max(1, Math.ceil(count / MAX_LABELS));
  const heights = heightLabels(model);
  return (
    <div role="img" aria-label={`Histogram, highest bar ${format(model.highest)}`} data-testid="bars">
      <span class="bars-top soft">{topText(model, short)}</span>
      <div class="bars">
        <div class="bars-y">
          {heights.map((label) => (
            <span key={label.at} style={{ bottom: `${(label.at * 100).toFixed(2)}%` }}>
              {label.label}
            </span>
          ))}
        </div>
        <div class="bars-plot">
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">
            <path class="bars-grid" d={heights.map((label) => `M0 ${HEIGHT * (1 - label.at)}H${WIDTH}`).join('')} />
            {range(count).map((place) => (
              <OneBar key={place} model={model} place={place} step={WIDTH / Math.max(count, 1)} />
            ))}
          </svg>
          <div class="bars-axis">
            {range(count)
              .filter((place) => place % each === 0)
              .map((place) => (
                <span key={place} style={{ left: `${(((place + 0.5) / count) * 100).toFixed(2)}%` }}>
                  {bound(model.now.unit, model.bars[place]?.low ?? 0)}
                </span>
              ))}
          </div>
        </div>
      </div>
    </div>
  );
}

export function BarsLegend(props: { readonly model: HistogramModel }): JSX.Element {
  const { now, old } = props.model;
  const colours = palette(useDarkness());
  return (
    <ol class="bars-legend" aria-label="Legend">
      {now.top.map((entry, index) => (
        <li key={index}>
          <span class="bars-colour" style={{ background: colours.series(index) }} />
          <CodeLink name={locationName(now.code, entry.location)} />
        </li>
      ))}
      <li>
        <span class="bars-colour bars-colour-rest" />
        all others
      </li>
      {old === null ? null : (
        <li>
          <span class="bars-colour bars-colour-old" />
          all together, before
        </li>
      )}
    </ol>
  );
}

export function BarsTable(props: { readonly model: HistogramModel }): JSX.Element {
  const { model } = props;
  const { now, old, bars } = model;
  const [selected, setSelected] = useState(-1);
  const total = (key: RankKey): number => now.buckets[key].reduce((sum, value) => sum + value, 0);
  const totals = { blocks: total('blocks'), bytes: total('bytes') };
  const hasErrors = (now.buckets.blocks_error ?? old?.buckets.blocks_error ?? null) !== null;
  const widthPx = (old === null ? 150 : 260) + (hasErrors ? (old === null ? 44 : 84) : 0);
  const column = (key: RankKey, cost: string, title: string): Column => ({
    ...costColumn(cost, { title, isDiff: old !== null, hasErrors }, (row) => ({
      value: valueIn(now, key, bars[row]?.now ?? null),
      total: totals[key],
      old: old === null ? undefined : valueIn(old, key, bars[row]?.old ?? null),
      error: errorIn(now, key, bars[row]?.now ?? null),
      oldError: errorIn(old, key, bars[row]?.old ?? null),
    })),
    key,
    widthPx,
    narrowPx: widthPx,
  });
  const low = (row: number): number => bars[row]?.low ?? 0;
  const high = (row: number): number => bars[row]?.high ?? 0;
  return (
    <DataTable
      label="Buckets"
      columns={[
        {
          key: 'range',
          title: now.unit === 'bytes' ? 'Size' : 'Lifetime',
          widthPx: 200,
          grows: true,
          cell: (row) => rangeText(now.unit, low(row), high(row)),
          saved: [
            { head: `From (${now.unit})`, value: low },
            { head: `To (${now.unit})`, value: high },
          ],
        },
        column('blocks', 'allocations', 'Blocks'),
        column('bytes', 'allocated_bytes', 'Bytes'),
      ]}
      count={bars.length}
      selected={selected}
      onSelect={setSelected}
    />
  );
}

function barsPicture(model: HistogramModel, title: string, isDark: boolean): Picture {
  const { bars, now, old } = model;
  const colours = palette(isDark);
  const count = Math.max(bars.length, 1);
  const each = Math.max(1, Math.ceil(count / MAX_LABELS));
  const colour = (layer: number): string => (layer === now.top.length ? cssVariable('--line-strong') : colours.series(layer));
  const shapes = bars.flatMap((bar, place): readonly Shape[] => {
    const before = heightOf(model, valueIn(old, model.rank, bar.old));
    const whole = valueIn(now, model.rank, bar.now);
    const share = (value: number): number => (value / Math.max(whole, 1)) * heightOf(model, whole);
    return [
      ...layersOf(model, bar).map(({ layer, below, above }): Shape => ({
        kind: 'bar', x: (place + 0.06) / count, width: 0.88 / count, y: share(below), height: share(above) - share(below), colour: colour(layer), opacity: 1,
      })),
      ...(before > 0
        ? [{ kind: 'line', points: [[place / count, 0], [place / count, before], [(place + 1) / count, before], [(place + 1) / count, 0]], colour: cssVariable('--text'), width: 1.5, dash: '3 3' } as const]
        : []),
    ];
  });
  return {
    title,
    shapes,
    x: bars.flatMap((bar, place) => (place % each === 0 ? [{ at: (place + 0.5) / count, label: bound(now.unit, bar.low) }] : [])),
    y: heightLabels(model),
    legend: [
      ...now.top.map((entry, layer) => ({ colour: colour(layer), text: locationName(now.code, entry.location).full })),
      { colour: colour(now.top.length), text: 'all others' },
    ],
    ink: { text: cssVariable('--text'), grid: cssVariable('--line'), mark: cssVariable('--text-soft'), background: cssVariable('--bg') },
  };
}

export function BarsButtons(props: { readonly model: HistogramModel; readonly name: string; readonly title: string }): JSX.Element {
  const dark = useDarkness();
  return <PictureButtons name={props.name} picture={() => barsPicture(props.model, props.title, dark)} />;
}
