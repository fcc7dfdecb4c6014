// The flame graph as a file: the zoomed part in its full height.
import { at } from '../base/columns';
import { drawFlame, ROW_PX, type FlameLook } from '../render/flame/draw';
import { newSlice, sliceFlame, type FlameSlice } from '../render/flame/slice';
import { flameSvg } from '../render/flame/svg';
import { costTitle } from '../model/cost';
import type { SaveFile } from './parts/save-file';
import { frameLines, type FlameModel } from './flame-model';

const WIDTH_PX = 1600;
/** Browsers refuse canvases beyond this size. */
const MAX_HEIGHT_PX = 16000;

function wholeSlice(model: FlameModel, zoomed: number, widthPx: number): FlameSlice {
  const slice = newSlice();
  const from = at(model.layout.left, zoomed);
  const to = at(model.layout.right, zoomed);
  sliceFlame(model.layout, { from, to, widthPx, firstRow: 0, lastRow: model.layout.rows }, slice);
  return slice;
}

export function exportSvg(model: FlameModel, look: FlameLook, zoomed: number, isFlame: boolean, saveFile: SaveFile): void {
  const title = `cairn: ${costTitle(model.cost, model.when)}`;
  const slice = wholeSlice(model, zoomed, WIDTH_PX);
  const text = flameSvg(model.layout, slice, look, { widthPx: WIDTH_PX, isFlame, title }, (frame) =>
    frameLines(model, frame, 'all').join('\n'),
  );
  saveFile('flame.svg', new Blob([text], { type: 'image/svg+xml' }));
}

export function exportPng(model: FlameModel, look: FlameLook, zoomed: number, isFlame: boolean, saveFile: SaveFile): void {
  const heightPx = Math.min(model.layout.rows * ROW_PX, MAX_HEIGHT_PX);
  const canvas = document.createElement('canvas');
  canvas.width = WIDTH_PX * 2;
  canvas.height = Math.min(heightPx * 2, MAX_HEIGHT_PX);
  const context = canvas.getContext('2d', { alpha: false });
  if (context === null) {
    return;
  }
  context.setTransform(2, 0, 0, canvas.height / heightPx, 0, 0);
  const slice = wholeSlice(model, zoomed, WIDTH_PX);
  const paper = { context, widthPx: WIDTH_PX, heightPx, scrollPx: 0, isFlame };
  drawFlame(paper, model.layout, slice, look, -1);
  canvas.toBlob((blob) => {
    if (blob !== null) {
      saveFile('flame.png', blob);
    }
  }, 'image/png');
}
