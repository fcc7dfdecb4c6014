// Reading columns: positions come from the server's tables, which were checked when they were
// decoded. A position outside gives an empty value instead of an exception, so that a view never
// fails because of one bad row.

/** The number at `index`, 0 outside. */
export function at(column: ArrayLike<number> | undefined, index: number): number {
  return column?.[index] ?? 0;
}

/** [0, count). */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** The first position in sorted `column` with a value greater than `value`. O(log n). */
export function upperBound(column: ArrayLike<number>, value: number, from = 0, to = column.length): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(column, middle) > value) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
