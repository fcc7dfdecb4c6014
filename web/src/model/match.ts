// Matches rows of two tables, new and old: equal keys, the first with the first, the second with
// the second. A row of only one table stays single; rows of only the old table come last. Pure,
// O(rows).

export interface MatchedRow {
  /** Positions in the two tables. */
  readonly now: number | null;
  readonly old: number | null;
}

export function matchRows(newKeys: readonly string[], oldKeys: readonly string[]): readonly MatchedRow[] {
  const waiting = new Map<string, number[]>();
  for (let row = oldKeys.length - 1; row >= 0; row--) {
    const key = oldKeys[row] ?? '';
    const rows = waiting.get(key) ?? [];
    rows.push(row);
    waiting.set(key, rows);
  }
  const matched: MatchedRow[] = newKeys.map((key, now) => ({ now, old: waiting.get(key)?.pop() ?? null }));
  const left = [...waiting.values()].flat().sort((a, b) => a - b);
  return [...matched, ...left.map((old) => ({ now: null, old }))];
}
