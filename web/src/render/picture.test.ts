// Exported pictures: hostile names stay text, and all drawings are inside the frame.
import { describe, expect, it } from 'vitest';
import type { ChartSpec } from './chart-spec';
import { outline, pictureSvg } from './picture';
import { timePicture } from './time-picture';
import { randomNumbers } from '../base/random-numbers';

const HOSTILE = '</text><script>alert(1)</script>"\'&\u0000';

function spec(seed: number, isStepped: boolean): ChartSpec {
  const random = randomNumbers(seed);
  const times = Array.from({ length: 20 }, (_, i) => (i + 1) * 50);
  const values = times.map(() => Math.floor(random() * 1e6));
  return {
    timesMs: times,
    areas: [{ colour: 'red', edge: values }, { colour: 'blue', edge: values.map((value) => value + 5) }],
    lines: [{ colour: 'black', width: 1, values: values.map((value, i) => (i % 3 === 0 ? null : value)) }],
    isStepped,
    marked: { fromMs: 100, toMs: 200 },
    marks: [{ ms: 300, label: HOSTILE }],
    formatValue: String,
    isBinary: true,
    formatTime: String,
    ink: { text: '#000', grid: '#ccc', mark: '#888', range: '#eee', background: '#fff' },
  };
}

describe.each([true, false])('a chart, stepped %s', (isStepped) => {
  it.each([1, 2, 3, 4, 5])('seed %d: lies inside of the frame', (seed) => {
    const picture = timePicture(spec(seed, isStepped), 'title', [], '#fff');
    for (const shape of picture.shapes) {
      const points = shape.kind === 'area' || shape.kind === 'line' ? shape.points : [];
      for (const [x, y] of points) {
        expect(x).toBeGreaterThanOrEqual(0);
        expect(x).toBeLessThanOrEqual(1);
        expect(y).toBeGreaterThanOrEqual(0);
        expect(y).toBeLessThanOrEqual(1);
      }
    }
    expect(picture.x.every((tick) => tick.at <= 1) && picture.y.every((tick) => tick.at <= 1)).toBe(true);
  });

  it('has hostile names as text only', () => {
    const svg = pictureSvg(timePicture(spec(1, isStepped), HOSTILE, [{ colour: 'red', text: HOSTILE }], '#fff'));
    const tags = new Set([...svg.matchAll(/<\/?([^\s>/]+)/g)].map((match) => match[1]));
    expect([...tags].sort()).toEqual(['path', 'rect', 'svg', 'text', 'title']);
    expect(svg.split('&lt;script&gt;alert(1)&lt;/script&gt;').length - 1).toBe(4);
    expect(svg).not.toContain('\u0000');
  });
});

it('steps hold a value from the time before until its own', () => {
  expect(outline([10, 20], [1, 3], 20, 4, true)).toEqual([[0.5, 0.25], [0.5, 0.75], [1, 0.75]]);
  expect(outline([10, 20, 30], [1, null, 3], 30, 3, false)).toEqual([[1 / 3, 1 / 3], [1, 1]]);
});
