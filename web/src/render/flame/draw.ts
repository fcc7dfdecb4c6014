// Flame graph, step 3 of 5: painting a slice. Uses only pixels and colours, not costs or the
// server.
import { shownText } from '../../base/shown-text';
import type { FlameLayout } from './layout';
import type { FlameSlice } from './slice';

export const ROW_PX = 20;
const LABEL_MIN_PX = 24;
const PADDING_PX = 4;

export interface FlameLook {
  /** The colour and text of each frame. */
  readonly fill: (frame: number) => string;
  readonly label: (frame: number) => string;
  readonly isDim: (frame: number) => boolean;
  readonly background: string;
  readonly text: string;
  readonly dimFill: string;
  readonly dimText: string;
  readonly outline: string;
  readonly font: string;
}

export interface FlameCanvas {
  readonly context: CanvasRenderingContext2D;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Pixels of the whole graph above the canvas' upper edge. */
  readonly scrollPx: number;
  readonly isFlame: boolean;
}

/** Upper edge of a row: an icicle has its root at the top, a flame at the bottom. */
export function rowTop(row: number, rows: number, isFlame: boolean): number {
  return (isFlame ? rows - 1 - row : row) * ROW_PX;
}

export function rowAt(y: number, rows: number, isFlame: boolean): number {
  const line = Math.floor(y / ROW_PX);
  return isFlame ? rows - 1 - line : line;
}

/**
 * The part of `text` that fits, by the average width of a character: measuring each label would
 * take a frame's time.
 */
export function fitText(text: string, widthPx: number, charPx: number): string {
  const fits = Math.floor((widthPx - 2 * PADDING_PX) / charPx);
  if (text.length <= fits) {
    return text;
  }
  return fits < 3 ? '' : `${text.slice(0, fits - 1)}…`;
}

export function drawFlame(
  canvas: FlameCanvas,
  layout: FlameLayout,
  slice: FlameSlice,
  look: FlameLook,
  selected: number,
): void {
  const { context } = canvas;
  context.fillStyle = look.background;
  context.fillRect(0, 0, canvas.widthPx, canvas.heightPx);
  context.font = look.font;
  context.textBaseline = 'middle';
  const charPx = context.measureText('abcdefghijklmnopqrstuvwxyz_:ABC').width / 31;
  for (let i = 0; i < slice.count; i++) {
    const frame = slice.frame[i] ?? 0;
    const width = slice.width[i] ?? 0;
    const x = slice.x[i] ?? 0;
    const y = rowTop(layout.row[frame] ?? 0, layout.rows, canvas.isFlame) - canvas.scrollPx;
    const dim = look.isDim(frame);
    context.fillStyle = dim ? look.dimFill : look.fill(frame);
    // A gap of half a pixel separates neighbours and keeps narrow frames visible.
    context.fillRect(x, y, width > 2 ? width - 0.75 : width, ROW_PX - 1);
    if (width >= LABEL_MIN_PX) {
      const text = fitText(shownText(look.label(frame)), width, charPx);
      context.fillStyle = dim ? look.dimText : look.text;
      context.fillText(text, x + PADDING_PX, y + ROW_PX / 2);
    }
    if (frame === selected) {
      context.strokeStyle = look.outline;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), ROW_PX - 3);
    }
  }
}
