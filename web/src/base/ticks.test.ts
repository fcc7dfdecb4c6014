// Axes: a few ticks, evenly spaced, up to the highest value.
import { describe, expect, it } from 'vitest';
import { ticks } from './ticks';

const HIGHEST = [1e-3, 0.7, 1, 3, 9.99, 10, 12, 99, 1000, 1023, 1024, 1025, 5e6, 7.3e9, 2 ** 52];

describe.each([true, false])('ticks, binary %s', (isBinary) => {
  it.each(HIGHEST)('up to %d', (highest) => {
    for (const most of [1, 2, 5, 10]) {
      const all = ticks(highest, most, isBinary);
      const step = all[1] ?? highest;
      expect(all[0]).toBe(0);
      expect(all.length).toBeLessThanOrEqual(most + 1);
      expect(all.at(-1)).toBeLessThanOrEqual(highest);
      expect((all.at(-1) ?? 0) + step * 2.5).toBeGreaterThan(highest);
      all.forEach((tick, i) => expect(tick).toBeCloseTo(i * step, 9));
    }
  });

  it.each([0, -1, Number.NaN])('of %d is 0 alone', (highest) => expect(ticks(highest, 5, isBinary)).toEqual([0]));
});
