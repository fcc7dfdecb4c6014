// From the answers of /series to what the chart, its legend and its files show.
import type { Series } from '../api/answers';
import { at } from '../base/columns';
import { formatBytes, formatCount, formatCountShort, formatMs } from '../base/format';
import { locationName } from '../model/code';
import { markText, type Mark } from '../model/mark';
import { extendTimes, shownValues, valuesAt, type ChartKind } from '../model/over-time';
import { stackUp } from '../model/stacked';
import type { ChartSpec } from '../render/chart-spec';
import { palette } from '../render/colour';
import type { LegendEntry } from '../render/picture';
import { isMoment, type Address } from '../state/address';
import { cssVariable } from './parts/theme-hook';

type Column = readonly (number | null)[];

export interface ChartModel {
  readonly series: Series;
  readonly kind: ChartKind;
  readonly timesMs: readonly number[];
  /** All that passes the filter. */
  readonly total: Column;
  /** One for each entry of `series.top`. */
  readonly top: readonly (readonly number[])[];
  readonly rest: readonly number[];
  /** Of the old recording in a comparison; null if there is none, or if it cannot be held against the new one. */
  readonly old: Column | null;
  /** Why `old` is null in a comparison, "" otherwise. */
  readonly oldProblem: string;
  readonly rss: Column | null;
}

/** RSS is sampled at times of its own: its latest sample before each time. */
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

export function chartModel(series: Series, old: Series | null, kind: ChartKind, withRss: boolean): ChartModel {
  const { points } = series;
  const isComparable = old !== null && (kind.isState || kind.isRate || old.slice_ms === series.slice_ms);
  const timesMs = isComparable ? extendTimes(points.end_ms, old.points.end_ms) : points.end_ms;
  return {
    series,
    kind,
    timesMs,
    total: valuesAt(timesMs, points, shownValues(kind, points[kind.asked], points), kind.isState),
    top: series.top.map((entry) => shownValues(kind, entry.values, points)),
    rest: shownValues(kind, series.rest, points),
    old: isComparable ? valuesAt(timesMs, old.points, shownValues(kind, old.points[kind.asked], old.points), kind.isState) : null,
    oldProblem:
      old === null || isComparable
        ? ''
        : `The slices of the two recordings last ${formatMs(series.slice_ms)} and ${formatMs(old.slice_ms)}: what happened within them cannot be compared. Rate can.`,
    rss: withRss ? rssAt(series, timesMs) : null,
  };
}

/** How a value of the chart is spelled: exact where there is room, short on axes. */
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

function marksOf(model: ChartModel, marks: readonly Mark[]): ChartSpec['marks'] {
  const { peak } = model.series;
  return [
    ...(model.kind.isState ? [{ ms: peak.time_ms, label: `peak ${formatBytes(peak.bytes)}` }] : []),
    ...marks.map((mark) => ({ ms: mark.time_ms, label: markText(mark) })),
  ];
}

export function chartSpec(model: ChartModel, marks: readonly Mark[], address: Address, isDark: boolean): ChartSpec {
  const { kind, series } = model;
  const colours = palette(isDark);
  const edges = stackUp([...model.top, model.rest].map((values) => ({ label: '', values })));
  const line = (values: Column | null, colour: string, dash: readonly number[]): ChartSpec['lines'] =>
    values === null ? [] : [{ colour: cssVariable(colour), width: 1.5, values, ...(dash.length === 0 ? {} : { dash }) }];
  return {
    timesMs: model.timesMs,
    areas: edges.map((edge, index) => ({
      edge,
      colour: index === series.top.length ? cssVariable('--line') : colours.series(index),
    })),
    lines: [...line(model.total, '--text', []), ...line(model.old, '--accent', [2, 3]), ...line(model.rss, '--text-soft', [6, 4])],
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
    { colour: cssVariable('--text'), text: 'all together' },
    ...(model.old === null ? [] : [{ colour: cssVariable('--accent'), text: 'all together, before' }]),
    ...(model.rss === null ? [] : [{ colour: cssVariable('--text-soft'), text: 'RSS' }]),
  ];
}

export function chartCsv(model: ChartModel): string {
  const { series } = model;
  const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
  const names = series.top.map((entry) => quote(siteText(series, entry.location)));
  const columns: readonly Column[] = [model.total, ...model.top, model.rest, ...(model.old === null ? [] : [model.old])];
  const rows = model.timesMs.map((end, i) => [end, ...columns.map((column) => column[i] ?? '')].join(','));
  return [['end_ms', 'total', ...names, 'rest', ...(model.old === null ? [] : ['old_total'])].join(','), ...rows].join('\n');
}
