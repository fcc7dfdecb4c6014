// A part of a call tree as the server sends it: columns in depth-first order, parents before
// children, siblings highest first.

export type CostColumns = Readonly<Record<string, readonly number[]>>;

export interface TreeNodes {
  readonly count: number;
  readonly id: readonly number[];
  readonly parent: readonly (number | null)[];
  readonly depth: readonly number[];
  readonly function: readonly (number | null)[];
  readonly inlined: readonly number[];
  readonly child_count: readonly number[];
  readonly self: CostColumns;
  readonly total: CostColumns;
  /** Wrapper frames that the node hides, the number that unfolds them, and the one that unfolded it. */
  readonly hidden: readonly number[] | null;
  readonly path: readonly number[] | null;
  readonly unfolded_by: readonly number[] | null;
  readonly matched: readonly number[] | null;
  readonly old_total: CostColumns | null;
  readonly old_self: CostColumns | null;
  /** Two standard errors of estimates; null: exact, or not asked. */
  readonly self_errors: CostColumns | null;
  readonly total_errors: CostColumns | null;
  readonly old_total_errors: CostColumns | null;
}
