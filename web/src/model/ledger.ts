// What the resident size consists of at one moment, and which moment lies nearest. Pure.
import { at } from '../base/columns';

export interface SplitTables {
  readonly kinds: { readonly key: readonly string[]; readonly phrase: readonly string[] };
  readonly breakdowns: { readonly columns: Readonly<Record<string, readonly number[]>> };
}

export interface LedgerPart {
  readonly key: string;
  readonly label: string;
  readonly bytes: number;
  /** Of the kind, for its colour. */
  readonly index: number;
}

/** The kinds of a split, in the order in which they are stacked. Together they are its RSS. */
export function splitParts(tables: SplitTables, row: number): readonly LedgerPart[] {
  const { kinds, breakdowns } = tables;
  return kinds.key.map((key, index) => ({
    key,
    index,
    label: kinds.phrase[index] ?? key,
    bytes: at(breakdowns.columns[`${key}_bytes`], row),
  }));
}

/** The resident size by kind of page, as a sample has it. */
export interface KindColumns {
  readonly anonymous_bytes: readonly (number | null)[];
  readonly file_bytes: readonly (number | null)[];
  readonly shmem_bytes: readonly (number | null)[];
}

/** What the columns say at `row`; null where the kinds are unknown, as in files of other tools. No process has none of all. */
export function kindsAt(samples: KindColumns, row: number): { readonly anonymous: number; readonly file: number; readonly shmem: number } | null {
  const anonymous = samples.anonymous_bytes[row] ?? null;
  const file = samples.file_bytes[row] ?? null;
  const shmem = samples.shmem_bytes[row] ?? null;
  return anonymous === null || file === null || shmem === null || anonymous + file + shmem === 0 ? null : { anonymous, file, shmem };
}

/** Where a look at the memory map stands on the axis of time. */
export interface LookBars {
  /** The edges of each bar, and a time between neighbours. */
  readonly times: readonly number[];
  /** The row of the look whose bar covers a time; -1 between them. */
  readonly rowAt: (time: number) => number;
}

const BAR_SHARE = 0.004;

/**
 * Looks are moments: between two of them nothing is known, so that each is drawn as a bar of its own, narrow, and never
 * touching its neighbours.
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

/** A column at other times than its own: null where it has none. Its own times are among them. */
export function placeAt(times: readonly number[], own: readonly number[], values: readonly number[]): readonly (number | null)[] {
  const known = new Map(own.map((time, row) => [time, at(values, row)]));
  return times.map((time) => known.get(time) ?? null);
}

/** The row that `passes` whose time is nearest to `ms`, the earlier of two; -1 if none passes. */
export function nearest(times: readonly number[], ms: number, passes: (row: number) => boolean): number {
  let best = -1;
  times.forEach((time, row) => {
    if (passes(row) && (best < 0 || Math.abs(time - ms) < Math.abs(at(times, best) - ms))) {
      best = row;
    }
  });
  return best;
}
