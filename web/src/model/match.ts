// Rows of two tables, new and old, that mean the same thing: equal keys, the first with the first, the second with the
// second. What only one table has stands alone; what only the old one has comes last. Pure, O(rows).

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
