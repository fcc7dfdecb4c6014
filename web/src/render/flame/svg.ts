// A flame graph as an SVG document, for export. Pure. Names are hostile: they pass `escapeXml` and
// occur only in text and title elements.
import { at } from '../../base/columns';
import { shownText } from '../../base/shown-text';
import { fitText, ROW_PX, rowTop, type FlameLook } from './draw';
import type { FlameLayout } from './layout';
import type { FlameSlice } from './slice';

const CHAR_PX = 6.6;

export function escapeXml(text: string): string {
  return shownText(text)
    .replace(/[\ufffe\uffff]/g, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

export function flameSvg(
  layout: FlameLayout,
  slice: FlameSlice,
  look: FlameLook,
  options: { readonly widthPx: number; readonly isFlame: boolean; readonly title: string },
  tooltip: (frame: number) => string,
): string {
  const height = layout.rows * ROW_PX;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${options.widthPx}" height="${height}" ` +
      `font-family="sans-serif" font-size="12">`,
    `<title>${escapeXml(options.title)}</title>`,
    `<rect width="100%" height="100%" fill="${look.background}"/>`,
  ];
  for (let i = 0; i < slice.count; i++) {
    const frame = at(slice.frame, i);
    const width = at(slice.width, i);
    const x = at(slice.x, i).toFixed(2);
    const y = rowTop(at(layout.row, frame), layout.rows, options.isFlame);
    const fill = look.isDim(frame) ? look.dimFill : look.fill(frame);
    const label = fitText(shownText(look.label(frame)), width, CHAR_PX);
    parts.push(
      `<g><title>${escapeXml(tooltip(frame))}</title>` +
        `<rect x="${x}" y="${y}" width="${width.toFixed(2)}" height="${ROW_PX - 1}" fill="${fill}"/>` +
        (label === ''
          ? ''
          : `<text x="${(at(slice.x, i) + 4).toFixed(2)}" y="${y + 14}" fill="${look.text}">${escapeXml(label)}</text>`) +
        '</g>',
    );
  }
  parts.push('</svg>');
  return parts.join('\n');
}
