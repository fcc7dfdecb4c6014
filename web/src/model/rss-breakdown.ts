// The RSS breakdown of one moment, and the search for the nearest moment. Pure.
import { at } from '../base/columns';

export interface SplitTables {
  readonly kinds: { readonly key: readonly string[]; readonly phrase: readonly string[] };
  readonly breakdowns: { readonly columns: Readonly<Record<string, readonly number[]>> };
}

export interface BreakdownPart {
  readonly key: string;
  readonly label: string;
  readonly bytes: number;
  /** Of the kind, for its colour. */
  readonly index: number;
}

/** The kinds of a breakdown, in the order of their layers. Their sum is RSS. */
export function splitParts(tables: SplitTables, row: number): readonly BreakdownPart[] {
  const { kinds, breakdowns } = tables;
  return kinds.key.map((key, index) => ({
    key,
    index,
    label: kinds.phrase[index] ?? key,
    bytes: at(breakdowns.columns[`${key}_bytes`], row),
  }));
}

/** RSS by kind of page, as in a sample. */
export interface KindColumns {
  readonly anonymous_bytes: readonly (number | null)[];
  readonly file_bytes: readonly (number | null)[];
  readonly shmem_bytes: readonly (number | null)[];
}

/**
 * The values of the columns at `row`; null if the kinds are unknown, as in files of other tools. A
 * process always has pages of some kind.
 */
export function kindsAt(samples: KindColumns, row: number): { readonly anonymous: number; readonly file: number; readonly shmem: number } | null {
  const anonymous = samples.anonymous_bytes[row] ?? null;
  const file = samples.file_bytes[row] ?? null;
  const shmem = samples.shmem_bytes[row] ?? null;
  return anonymous === null || file === null || shmem === null || anonymous + file + shmem === 0 ? null : { anonymous, file, shmem };
}

/** The bars of memory snapshots on the time axis. */
export interface LookBars {
  /** The edges of each bar, and a time between neighbours. */
  readonly times: readonly number[];
  /** The row of the snapshot whose bar covers a time; -1 between them. */
  readonly rowAt: (time: number) => number;
}

const BAR_SHARE = 0.004;

/**
 * A snapshot is a moment, and the breakdown between two snapshots is unknown. So each is drawn as a
 * separate narrow bar that never touches its neighbours.
 */
export function lookBars(looks: readonly number[], lengthMs: number): LookBars {
  const half = looks.map((time, row) => {
    const gaps = [row > 0 ? time - at(looks, row - 1) : Infinity, row + 1 < looks.length ? at(looks, row + 1) - time : Infinity];
    return Math.min(lengthMs * BAR_SHARE, ...gaps.map((gap) => gap / 3));
  });
  const times = looks.flatMap((time, row) => [
    Math.max(time - at(half, row), 0),
    time,
    time + at(half, row),
    ...(row + 1 < looks.length ? [(time + at(looks, row + 1)) / 2] : []),
  ]);
  return {
    times,
    rowAt: (time) => {
      const row = nearest(looks, time, () => true);
      return row >= 0 && Math.abs(time - at(looks, row)) <= at(half, row) * (1 + 1e-9) ? row : -1;
    },
  };
}

/** Both sorted lists as one, each time once. */
export function mergeTimes(first: readonly number[], second: readonly number[]): readonly number[] {
  return [...new Set([...first, ...second])].sort((a, b) => a - b);
}

/** A column at more times than its own: null where it has no value. `times` include its own. */
export function placeAt(times: readonly number[], own: readonly number[], values: readonly number[]): readonly (number | null)[] {
  const known = new Map(own.map((time, row) => [time, at(values, row)]));
  return times.map((time) => known.get(time) ?? null);
}

/** The row that `passes` with the time nearest to `ms`, the earlier of two; -1 if none passes. */
export function nearest(times: readonly number[], ms: number, passes: (row: number) => boolean): number {
  let best = -1;
  times.forEach((time, row) => {
    if (passes(row) && (best < 0 || Math.abs(time - ms) < Math.abs(at(times, best) - ms))) {
      best = row;
    }
  });
  return best;
}
