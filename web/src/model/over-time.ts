// Columns over time: the charts, their rates, and a second recording drawn over the first. A column
// has one number for each slice of the run, (start, end] in milliseconds. Live bytes are those at
// the end of the slice; other columns count events inside it. Pure.
import { at, upperBound } from '../base/columns';

export interface ChartKind {
  readonly value: string;
  readonly label: string;
  readonly phrase: string;
  /** The column of the request. */
  readonly asked: 'live_bytes' | 'allocations' | 'temporary' | 'allocated_bytes';
  readonly isBytes: boolean;
  /** A state at the slice's end, not a sum over the slice. */
  readonly isState: boolean;
  /** Divided by the slice's seconds. */
  readonly isRate: boolean;
}

const SUM = { isBytes: false, isState: false, isRate: false } as const;

const CONSUMED: ChartKind = { value: 'live_bytes', asked: 'live_bytes', label: 'Consumed', phrase: 'Bytes live at the end of each slice', isBytes: true, isState: true, isRate: false };

export const CHARTS: readonly ChartKind[] = [
  CONSUMED,
  { ...SUM, value: 'allocations', asked: 'allocations', label: 'Allocations', phrase: 'Allocation calls within each slice' },
  { ...SUM, value: 'rate', asked: 'allocations', label: 'Rate', phrase: 'Allocation calls each second', isRate: true },
  { ...SUM, value: 'temporary', asked: 'temporary', label: 'Temporary', phrase: 'Temporary allocations within each slice' },
  { ...SUM, value: 'allocated_bytes', asked: 'allocated_bytes', label: 'Allocated', phrase: 'Bytes asked for within each slice', isBytes: true },
];

export function chartKind(value: string): ChartKind {
  return CHARTS.find((kind) => kind.value === value) ?? CONSUMED;
}

/** The charts whose figures the file has. Live bytes over time are always known. */
export function knownCharts(knows: (cost: string) => boolean): readonly ChartKind[] {
  return CHARTS.filter((kind) => kind.asked === 'live_bytes' || knows(kind.asked));
}

export interface Slices {
  readonly start_ms: readonly number[];
  readonly end_ms: readonly number[];
}

/** Per second of its slice. */
export function perSecond(values: readonly number[], slices: Slices): readonly number[] {
  return values.map((value, i) => {
    const ms = at(slices.end_ms, i) - at(slices.start_ms, i);
    return ms > 0 ? (value * 1000) / ms : 0;
  });
}

/** The plotted values: the column itself, or its rate. */
export function shownValues(kind: ChartKind, values: readonly number[], slices: Slices): readonly number[] {
  return kind.isRate ? perSecond(values, slices) : values;
}

/**
 * The values of a column at `times`; null before its first slice and after its last. A state holds
 * until the next one.
 */
export function valuesAt(times: readonly number[], slices: Slices, values: readonly number[], isState: boolean): readonly (number | null)[] {
  const { end_ms } = slices;
  const last = end_ms.length - 1;
  return times.map((time) => {
    const ended = upperBound(end_ms, time);
    const isEnd = ended > 0 && at(end_ms, ended - 1) === time;
    const row = isState || isEnd ? ended - 1 : ended;
    return row < 0 || row > last || time > at(end_ms, last) || time < at(slices.start_ms, 0) ? null : at(values, row);
  });
}

/** `times`, followed by the later times of `others`. Both are sorted. */
export function extendTimes(times: readonly number[], others: readonly number[]): readonly number[] {
  const end = times.at(-1) ?? -1;
  return [...times, ...others.filter((time) => time > end)];
}
