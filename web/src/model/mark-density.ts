// Marks where there is no room for each: how many there are in each column of a drawing. Pure.

/** Up to so many marks are drawn one by one. */
export const FEW_MARKS = 100;
/** Shades of a column, by the share of the fullest one. */
export const SHADES = 4;

/** The number of marks in each of `columns` equal parts of the run. */
export function countColumns(timesMs: readonly number[], maxMs: number, columns: number): readonly number[] {
  const counts = Array.from({ length: columns }, () => 0);
  for (const ms of timesMs) {
    const column = Math.min(Math.max(Math.floor((ms / maxMs) * columns), 0), columns - 1);
    counts[column] = (counts[column] ?? 0) + 1;
  }
  return counts;
}

/** By column: 0 without marks, else 1 to SHADES, the fullest column's. */
export function shades(counts: readonly number[]): readonly number[] {
  const most = counts.reduce((high, count) => Math.max(high, count), 1);
  return counts.map((count) => Math.ceil((count / most) * SHADES));
}

export interface LabelPlace {
  readonly left: number;
  readonly right: number;
}

/**
 * The row of each label, or -1 where every row has one in its way. The first labels choose first. Places are in
 * pixels.
 */
export function labelRows(places: readonly LabelPlace[], rows: number): readonly number[] {
  const taken: LabelPlace[][] = Array.from({ length: rows }, () => []);
  return places.map((place) => {
    const row = taken.findIndex((others) => others.every((other) => place.right < other.left || place.left > other.right));
    taken[row]?.push(place);
    return row;
  });
}
