// The exported drawing with hostile names: they stay text.
import { expect, it } from 'vitest';
import { layoutFlame } from './layout';
import { randomTree } from './random-tree';
import { newSlice, sliceFlame } from './slice';
import { escapeXml, flameSvg } from './svg';

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "'/**/;alert(1)//",
  ']]><svg onload=alert(1)>',
  '&lt;b&gt;',
  'a\u0000b\u0008c\uffff',
];

it.each(HOSTILE)('%j leaves no markup', (name) => {
  const nodes = randomTree(1, 20);
  const layout = layoutFlame(nodes, nodes.total['cost'] ?? []);
  const slice = newSlice();
  sliceFlame(layout, { from: 0, to: layout.right[0] ?? 1, widthPx: 1000, firstRow: 0, lastRow: 9 }, slice);
  const look = {
    fill: () => '#abc', label: () => name, isDim: () => false,
    background: '#fff', text: '#000', dimFill: '#eee', dimText: '#999', outline: '#000', font: '',
  };
  const svg = flameSvg(layout, slice, look, { widthPx: 1000, isFlame: false, title: name }, () => name);
  const tags = new Set([...svg.matchAll(/<\/?([^\s>/]+)/g)].map((match) => match[1]));
  expect([...tags].sort()).toEqual(['g', 'rect', 'svg', 'text', 'title']);
  expect(svg).not.toMatch(/[\u0000-\u0008\uffff]/);
});

it('spells the five characters of XML', () => {
  expect(escapeXml('<a href="x">&</a>')).toBe('&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;');
});
