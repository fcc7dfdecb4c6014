// Converts the answers of /series to the data of the chart, its legend and its files.
import type { Series } from '../api/answers';
import { at } from '../base/columns';
import { formatBytes, formatCount, formatCountShort, formatMs } from '../base/format';
import { locationName } from '../model/code';
import { errorBeside } from '../model/cost';
import { markText, type Mark } from '../model/mark';
import { extendTimes, shownValues, valuesAt, type ChartKind } from '../model/over-time';
import { stackUp } from '../model/stacked';
import { tableText } from '../model/table-text';
import type { ChartSpec } from '../render/chart-spec';
import { palette } from '../render/colour';
import type { LegendEntry } from '../render/picture';
import { isMoment, type Address } from '../state/address';
import { isSubject } from './parts/subject';
import { cssVariable } from './parts/theme-hook';

type Column = readonly (number | null)[];

export interface ChartModel {
  readonly series: Series;
  readonly kind: ChartKind;
  readonly timesMs: readonly number[];
  /** The sum of all that passes the filter. */
  readonly total: Column;
  /** The highest value within each slice, if known: for the live heap without a filter. */
  readonly highest: Column | null;
  /** One for each entry of `series.top`. */
  readonly top: readonly (readonly number[])[];
  readonly rest: readonly number[];
  /** Of the columns above and of `old`: null if they are exact. */
  readonly errors: {
    readonly total: Column | null;
    readonly highest: Column | null;
    readonly top: readonly (readonly number[] | null)[];
    readonly rest: readonly number[] | null;
    readonly old: Column | null;
  };
  /** The old recording in a comparison; null if there is none, or if it is not comparable. */
  readonly old: Column | null;
  /** The reason for a null `old` in a comparison, else "". */
  readonly oldProblem: string;
  readonly rss: Column | null;
}

/** RSS has its own sample times: the latest sample before each time. */
function rssAt(series: Series, times: readonly number[]): Column {
  const { rss } = series;
  let next = 0;
  let latest: number | null = null;
  return times.map((time) => {
    while (next < rss.count && at(rss.time_ms, next) <= time) {
      latest = at(rss.rss_bytes, next);
      next++;
    }
    return latest;
  });
}

export interface ChartWants {
  readonly rss: boolean;
  /** No filter is active. */
  readonly isWhole: boolean;
}

export function chartModel(series: Series, old: Series | null, kind: ChartKind, wants: ChartWants): ChartModel {
  const { points } = series;
  const isComparable = old !== null && (kind.isState || kind.isRate || old.slice_ms === series.slice_ms);
  const timesMs = isComparable ? extendTimes(points.end_ms, old.points.end_ms) : points.end_ms;
  const errorsOf = (of: Series): Column | null => {
    const errors = of.points[`${kind.asked}_error`];
    return errors === null ? null : valuesAt(timesMs, of.points, shownValues(kind, errors, of.points), kind.isState);
  };
  const shown = (values: readonly number[] | null): readonly number[] | null => (values === null ? null : shownValues(kind, values, points));
  const hasHighest = kind.isState && wants.isWhole;
  return {
    series,
    kind,
    timesMs,
    total: valuesAt(timesMs, points, shownValues(kind, points[kind.asked], points), kind.isState),
    highest: hasHighest ? valuesAt(timesMs, points, points.live_max_bytes, false) : null,
    top: series.top.map((entry) => shownValues(kind, entry.values, points)),
    rest: shownValues(kind, series.rest, points),
    errors: {
      total: errorsOf(series),
      highest: hasHighest && points.live_max_bytes_error !== null ? valuesAt(timesMs, points, points.live_max_bytes_error, false) : null,
      top: series.top.map((entry) => shown(entry.errors)),
      rest: shown(series.rest_errors),
      old: isComparable ? errorsOf(old) : null,
    },
    old: isComparable ? valuesAt(timesMs, old.points, shownValues(kind, old.points[kind.asked], old.points), kind.isState) : null,
    oldProblem:
      old === null || isComparable
        ? ''
        : `The slices of the two recordings last ${formatMs(series.slice_ms)} and ${formatMs(old.slice_ms)}: what happened within them cannot be compared. Rate can.`,
    rss: wants.rss ? rssAt(series, timesMs) : null,
  };
}

/** The format of the chart's values: exact if there is room, short on axes. */
export function chartFormat(kind: ChartKind, isShort = false): (value: number) => string {
  const number = kind.isBytes ? formatBytes : isShort ? formatCountShort : formatCount;
  return kind.isRate ? (value) => `${number(value)}/s` : number;
}

function markedRange(address: Address, model: ChartModel): ChartSpec['marked'] {
  if (address.from_ms === '' && address.to_ms === '') {
    return null;
  }
  const toMs = address.to_ms === '' ? (model.timesMs.at(-1) ?? 0) : Number(address.to_ms);
  return { fromMs: isMoment(address) ? toMs : Number(address.from_ms), toMs };
}

/** Where the outline of the chart may really be, as two lines: lower and upper. */
export function limitsOf(model: ChartModel): readonly Column[] {
  const values = model.highest ?? model.total;
  const errors = model.highest === null ? model.errors.total : model.errors.highest;
  return errors === null
    ? []
    : [-1, 1].map((side) => values.map((value, i) => (value === null ? null : Math.max(value + side * (errors[i] ?? 0), 0))));
}

/** The strength of areas beside the one that the page is about. */
export const ASIDE = 0.3;

/** The place of the page's subject among the areas; -1 without one. */
export function subjectOf(series: Series, address: Address): number {
  return series.top.findIndex((entry) => isSubject(address, locationName(series.code, entry.location)));
}

function marksOf(model: ChartModel, marks: readonly Mark[]): ChartSpec['marks'] {
  const { peak } = model.series;
  const what = model.highest === null ? 'peak of the whole heap' : 'peak';
  return [
    ...(model.kind.isState ? [{ ms: peak.time_ms, label: `${what} ${formatBytes(peak.bytes)}${errorBeside(peak.bytes, peak.error)}`, isMain: true }] : []),
    ...marks.map((mark) => ({ ms: mark.time_ms, label: markText(mark) })),
  ];
}

export function chartSpec(model: ChartModel, marks: readonly Mark[], address: Address, isDark: boolean): ChartSpec {
  const { kind, series } = model;
  const colours = palette(isDark);
  const about = subjectOf(series, address);
  const edges = stackUp([...model.top, model.rest].map((values) => ({ label: '', values })));
  const thin = (values: Column): ChartSpec['lines'] => [{ colour: cssVariable('--text-soft'), width: 0.75, values }];
  const line = (values: Column | null, colour: string, dash: readonly number[]): ChartSpec['lines'] =>
    values === null ? [] : [{ colour: cssVariable(colour), width: 1.5, values, ...(dash.length === 0 ? {} : { dash }) }];
  return {
    timesMs: model.timesMs,
    areas: edges.map((edge, index) => ({
      edge,
      colour: index === series.top.length ? cssVariable('--line') : colours.series(index, about >= 0 && about !== index ? ASIDE : 1),
    })),
    // The outline is the highest value within each slice: the peak is more often between two ends
    // of slices than at one.
    lines: [
      ...line(model.highest ?? model.total, '--text', []),
      ...limitsOf(model).flatMap((limit) => thin(limit)),
      ...line(model.old, '--accent', [2, 3]), ...line(model.rss, '--text-soft', [6, 4]),
    ],
    isStepped: !kind.isState,
    marked: markedRange(address, model),
    marks: marksOf(model, marks),
    formatValue: chartFormat(kind, true),
    isBinary: kind.isBytes,
    formatTime: formatMs,
    ink: {
      text: cssVariable('--text'),
      grid: cssVariable('--line'),
      mark: cssVariable('--text-soft'),
      range: isDark ? 'rgb(127 178 245 / 22%)' : 'rgb(26 95 180 / 16%)',
      background: cssVariable('--bg'),
    },
  };
}

/** A call site with its place: several lines of one function are different sites. */
function siteText(series: Series, location: number | null): string {
  const name = locationName(series.code, location);
  return name.file === '' ? name.full : `${name.full} (${name.file}:${name.line})`;
}

export function legendEntries(model: ChartModel, isDark: boolean): readonly LegendEntry[] {
  const colours = palette(isDark);
  const { series } = model;
  return [
    ...series.top.map((entry, index) => ({ colour: colours.series(index), text: siteText(series, entry.location) })),
    { colour: cssVariable('--line'), text: series.top.length === 0 ? 'everything that passes' : 'all others' },
    { colour: cssVariable('--text'), text: model.highest === null ? 'all together' : 'all together, highest within each slice' },
    ...(limitsOf(model).length === 0 ? [] : [{ colour: cssVariable('--text-soft'), text: 'where it may really be' }]),
    ...(model.old === null ? [] : [{ colour: cssVariable('--accent'), text: 'all together, before' }]),
    ...(model.rss === null ? [] : [{ colour: cssVariable('--text-soft'), text: 'RSS' }]),
  ];
}

export function chartCsv(model: ChartModel): string {
  const { series } = model;
  const names = series.top.map((entry) => siteText(series, entry.location));
  const extra: readonly (readonly [string, Column | null])[] = [
    ['old_total', model.old],
    ['highest', model.highest],
    ['total error', model.errors.total],
    ...series.top.map((entry, i) => [`${siteText(series, entry.location)} error`, model.errors.top[i] ?? null] as const),
    ['rest error', model.errors.rest],
    ['old_total error', model.errors.old],
    ['highest error', model.errors.highest],
  ];
  const known = extra.flatMap(([name, column]) => (column === null ? [] : [{ name, column }]));
  const columns: readonly Column[] = [model.total, ...model.top, model.rest, ...known.map(({ column }) => column)];
  const rows = model.timesMs.map((end, i) => [end, ...columns.map((column) => column[i] ?? '')]);
  return tableText(['end_ms', 'total', ...names, 'rest', ...known.map(({ name }) => name)], rows, 'csv');
}
