// Flame graph, step 2 of 5: finds the visible frames. Pure; writes into arrays that live as long as
// the graph, so that drawing a frame does not allocate.
//
// Coordinates: input in the layout's, output in pixels from the left edge and rows. A frame
// narrower than half a pixel is skipped, with all frames that end before the next half pixel and
// all frames below. So a row costs at most O(pixels * log n), not O(n), and a row without visible
// frames costs nothing. Columns are read directly: a function that reads arrays of several kinds is
// not inlined, and this one would be called a million times per second.
import type { FlameLayout } from './layout';

/** The window onto the layout: [from, to) of the cost is `widthPx` wide. */
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

/**
 * The first place in [low, high) of rowFrames whose frame ends after `edge`: O(log n) of its
 * distance from `low`.
 */
export function firstEndingAfter(layout: FlameLayout, edge: number, low: number, high: number): number {
  const { right, rowFrames } = layout;
  let step = 1;
  let end = low;
  while (end < high && (right[rowFrames[end] ?? 0] ?? 0) <= edge) {
    low = end + 1;
    end = low + step;
    step *= 2;
  }
  end = Math.min(end, high);
  while (low < end) {
    const middle = (low + end) >>> 1;
    if ((right[rowFrames[middle] ?? 0] ?? 0) > edge) {
      end = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

export function sliceFlame(layout: FlameLayout, view: FlameWindow, out: FlameSlice): void {
  out.count = 0;
  if (view.to <= view.from || view.widthPx <= 0) {
    return;
  }
  const firstRow = Math.max(view.firstRow, 0);
  const lastRow = Math.min(view.lastRow, layout.rows - 1);
  let above = 0;
  for (let row = firstRow; row <= lastRow; row++) {
    const begin = out.count;
    const start = layout.rowStart[row] ?? 0;
    const end = layout.rowStart[row + 1] ?? 0;
    if (row === firstRow) {
      sliceSpan(layout, view, view.from, view.to, start, end, out);
    } else {
      sliceBelow(layout, view, above, begin, start, end, out);
    }
    if (out.count === begin) {
      return;
    }
    above = begin;
  }
}

/**
 * The row below the frames of `out` in [first, last). Frames below a narrow frame are narrower
 * still.
 */
function sliceBelow(layout: FlameLayout, view: FlameWindow, first: number, last: number, start: number, end: number, out: FlameSlice): void {
  let place = start;
  for (let i = first; i < last && place < end; i++) {
    const parent = out.frame[i] ?? 0;
    const from = Math.max(layout.left[parent] ?? 0, view.from);
    const to = Math.min(layout.right[parent] ?? 0, view.to);
    place = sliceSpan(layout, view, from, to, place, end, out);
  }
}

/**
 * The frames of one row, places [place, end), in [from, to) of the cost. Returns the first place
 * behind them.
 */
function sliceSpan(layout: FlameLayout, view: FlameWindow, from: number, to: number, place: number, end: number, out: FlameSlice): number {
  const { left, right, rowFrames } = layout;
  const scale = view.widthPx / (view.to - view.from);
  place = firstEndingAfter(layout, from, place, end);
  while (place < end) {
    const frame = rowFrames[place] ?? 0;
    const own = left[frame] ?? 0;
    if (own >= to) {
      break;
    }
    const begin = Math.max(own, from);
    const width = (Math.min(right[frame] ?? 0, to) - begin) * scale;
    if (width < MIN_WIDTH_PX) {
      place = firstEndingAfter(layout, begin + MIN_WIDTH_PX / scale, place + 1, end);
      continue;
    }
    if (out.count === out.frame.length) {
      grow(out);
    }
    out.frame[out.count] = frame;
    out.x[out.count] = (begin - view.from) * scale;
    out.width[out.count] = width;
    out.count++;
    place++;
  }
  return place;
}
