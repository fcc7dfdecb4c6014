// Flame graph, step 4 of 5: finds the frame at a point. Pure; O(log n).
import { at } from '../../base/columns';
import type { FlameLayout } from './layout';
import { firstEndingAfter } from './slice';

/** The frame of `row` that covers `x` (in units of the cost), or -1. */
export function hitFlame(layout: FlameLayout, row: number, x: number): number {
  if (row < 0 || row >= layout.rows) {
    return -1;
  }
  const end = at(layout.rowStart, row + 1);
  const place = firstEndingAfter(layout, x, at(layout.rowStart, row), end);
  if (place >= end) {
    return -1;
  }
  const frame = at(layout.rowFrames, place);
  return at(layout.left, frame) <= x ? frame : -1;
}

export type Direction = 'parent' | 'child' | 'previous' | 'next';

/** The next frame from `frame` for an arrow key, or `frame` itself at an edge. */
export function neighbour(layout: FlameLayout, frame: number, direction: Direction): number {
  if (direction === 'parent') {
    const parent = at(layout.parent, frame);
    return parent < 0 ? frame : parent;
  }
  const row = at(layout.row, frame);
  if (direction === 'child') {
    return row + 1 < layout.rows ? widestChild(layout, frame, row + 1) : frame;
  }
  const start = at(layout.rowStart, row);
  const end = at(layout.rowStart, row + 1);
  let place = firstEndingAfter(layout, at(layout.left, frame), start, end);
  while (place < end && at(layout.rowFrames, place) !== frame) {
    place++;
  }
  place += direction === 'next' ? 1 : -1;
  return place >= start && place < end ? at(layout.rowFrames, place) : frame;
}

/** Siblings are sorted highest first, so the first child is the widest. */
function widestChild(layout: FlameLayout, frame: number, row: number): number {
  const end = at(layout.rowStart, row + 1);
  const place = firstEndingAfter(layout, at(layout.left, frame), at(layout.rowStart, row), end);
  const child = place < end ? at(layout.rowFrames, place) : -1;
  return child >= 0 && at(layout.parent, child) === frame ? child : frame;
}
