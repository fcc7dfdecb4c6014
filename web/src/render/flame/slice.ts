// Flame graph, step 2 of 5: what can be seen. Pure; writes into arrays that live as long as the graph, so that a
// drawn frame allocates nothing.
//
// Coordinates: in, the layout's; out, pixels from the left edge and rows. A frame narrower than half a pixel is
// skipped together with all that end before the next half pixel: a row costs O(pixels * log n), not O(n).
import { at } from '../../base/columns';
import type { FlameLayout } from './layout';

/** The window onto the layout: [from, to) of the cost is as wide as `widthPx`. */
export interface FlameWindow {
  readonly from: number;
  readonly to: number;
  readonly widthPx: number;
  readonly firstRow: number;
  readonly lastRow: number;
}

export interface FlameSlice {
  count: number;
  frame: Int32Array;
  x: Float32Array;
  width: Float32Array;
}

export const MIN_WIDTH_PX = 0.5;

export function newSlice(): FlameSlice {
  return { count: 0, frame: new Int32Array(1024), x: new Float32Array(1024), width: new Float32Array(1024) };
}

function grow(slice: FlameSlice): void {
  const size = slice.frame.length * 2;
  const frame = new Int32Array(size);
  const x = new Float32Array(size);
  const width = new Float32Array(size);
  frame.set(slice.frame);
  x.set(slice.x);
  width.set(slice.width);
  slice.frame = frame;
  slice.x = x;
  slice.width = width;
}

/** First place in [low, high) of rowFrames whose frame ends beyond `edge`. */
export function firstEndingAfter(layout: FlameLayout, edge: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(layout.right, at(layout.rowFrames, middle)) > edge) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

export function sliceFlame(layout: FlameLayout, view: FlameWindow, out: FlameSlice): void {
  out.count = 0;
  const span = view.to - view.from;
  if (span <= 0 || view.widthPx <= 0) {
    return;
  }
  const scale = view.widthPx / span;
  const lastRow = Math.min(view.lastRow, layout.rows - 1);
  for (let row = Math.max(view.firstRow, 0); row <= lastRow; row++) {
    sliceRow(layout, view, row, scale, out);
  }
}

function sliceRow(layout: FlameLayout, view: FlameWindow, row: number, scale: number, out: FlameSlice): void {
  const end = at(layout.rowStart, row + 1);
  let place = firstEndingAfter(layout, view.from, at(layout.rowStart, row), end);
  while (place < end) {
    const frame = at(layout.rowFrames, place);
    if (at(layout.left, frame) >= view.to) {
      return;
    }
    const left = Math.max(at(layout.left, frame), view.from);
    const right = Math.min(at(layout.right, frame), view.to);
    const width = (right - left) * scale;
    if (width < MIN_WIDTH_PX) {
      place = Math.max(place + 1, firstEndingAfter(layout, left + MIN_WIDTH_PX / scale, place + 1, end));
      continue;
    }
    if (out.count === out.frame.length) {
      grow(out);
    }
    out.frame[out.count] = frame;
    out.x[out.count] = (left - view.from) * scale;
    out.width[out.count] = width;
    out.count++;
    place++;
  }
}
