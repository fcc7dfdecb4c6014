// Flame graph, step 1 of 5: computes the position of every frame. Pure; O(n) in time and space.
//
// Coordinates: x in units of the cost (bytes, calls), y in rows. Frame i spans [left[i], right[i])
// in row depth[i] - depth of the first. Siblings are side by side from their parent's left edge, in
// the server's order; the self cost of a function is the free space at its right. Sums are exact:
// they are integers below 2^53.
//
// Invariants (layout.test.ts): children are inside their parent, siblings do not overlap, and each
// row's frames are sorted by left and by right. The binary searches of slice.ts and hit.ts rely on
// that.
import { at } from '../../base/columns';
import type { TreeNodes } from '../../model/tree';

export interface FlameLayout {
  readonly count: number;
  readonly rows: number;
  readonly left: Float64Array;
  readonly right: Float64Array;
  readonly row: Int32Array;
  readonly parent: Int32Array;
  /** Frames of row r: rowFrames[rowStart[r]] up to rowFrames[rowStart[r + 1]], from left to right. */
  readonly rowStart: Int32Array;
  readonly rowFrames: Int32Array;
}

export function layoutFlame(nodes: TreeNodes, width: readonly number[]): FlameLayout {
  const count = nodes.count;
  const left = new Float64Array(count);
  const right = new Float64Array(count);
  const next = new Float64Array(count);
  const row = new Int32Array(count);
  const parent = new Int32Array(count);
  const base = at(nodes.depth, 0);
  let rows = count === 0 ? 0 : 1;
  for (let i = 0; i < count; i++) {
    const above = nodes.parent[i] ?? -1;
    parent[i] = above;
    row[i] = at(nodes.depth, i) - base;
    rows = Math.max(rows, at(row, i) + 1);
    const start = above < 0 ? 0 : at(next, above);
    left[i] = start;
    right[i] = start + (at(width, i) || 0); // an unknown cost has no width
    next[i] = start;
    if (above >= 0) {
      next[above] = at(right, i);
    }
  }
  return { count, rows, left, right, row, parent, ...indexRows(row, rows) };
}

/** Counting sort by row; within a row depth-first order is left-to-right order. */
function indexRows(row: Int32Array, rows: number): { rowStart: Int32Array; rowFrames: Int32Array } {
  const rowStart = new Int32Array(rows + 1);
  for (const r of row) {
    rowStart[r + 1] = at(rowStart, r + 1) + 1;
  }
  for (let r = 0; r < rows; r++) {
    rowStart[r + 1] = at(rowStart, r + 1) + at(rowStart, r);
  }
  const fill = rowStart.slice(0, rows);
  const rowFrames = new Int32Array(row.length);
  for (let i = 0; i < row.length; i++) {
    const r = at(row, i);
    const place = at(fill, r);
    rowFrames[place] = i;
    fill[r] = place + 1;
  }
  return { rowStart, rowFrames };
}
