// What the resident size consists of at one moment, and which moment lies nearest. Pure.
import { at } from '../base/columns';

export interface SplitTables {
  readonly kinds: { readonly key: readonly string[]; readonly phrase: readonly string[] };
  readonly splits: { readonly columns: Readonly<Record<string, readonly number[]>> };
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
  const { kinds, splits } = tables;
  return kinds.key.map((key, index) => ({
    key,
    index,
    label: kinds.phrase[index] ?? key,
    bytes: at(splits.columns[`${key}_bytes`], row),
  }));
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
