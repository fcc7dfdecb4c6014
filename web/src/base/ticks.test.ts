// Axes: a few ticks, evenly spaced, up to the highest value.
import { describe, expect, it } from 'vitest';
import { formatMs } from './format';
import { logTicks, ticks, tickStep, TIME_STEPS_MS } from './ticks';

const HIGHEST = [1e-3, 0.7, 1, 3, 9.99, 10, 12, 99, 1000, 1023, 1024, 1025, 5e6, 7.3e9, 2 ** 52];

describe.each(['binary', 'decimal', 'time'] as const)('ticks, %s', (kind) => {
  it.each(HIGHEST)('up to %d', (highest) => {
    for (const most of [1, 2, 5, 10]) {
      const all = ticks(highest, most, kind);
      const step = all[1] ?? highest;
      expect(all[0]).toBe(0);
      expect(all.length).toBeLessThanOrEqual(most + 1);
      expect(all.at(-1)).toBeLessThanOrEqual(highest);
      expect((all.at(-1) ?? 0) + step * 2.5).toBeGreaterThan(highest);
      all.forEach((tick, i) => expect(tick).toBeCloseTo(i * step, 9));
    }
  });

  it.each([0, -1, Number.NaN])('of %d is 0 alone', (highest) => expect(ticks(highest, 5, kind)).toEqual([0]));
});

describe('ticks of time', () => {
  it.each([
    [150_000, 3, ['0 ms', '1 min 00 s', '2 min 00 s']],
    [100_000, 5, ['0 ms', '30.0 s', '1 min 00 s', '1 min 30 s']],
    [7_200_000, 4, ['0 ms', '30 min 00 s', '1 h 00 min', '1 h 30 min', '2 h 00 min']],
    [90, 5, ['0 ms', '20.0 ms', '40.0 ms', '60.0 ms', '80.0 ms']],
  ])('of %d ms are at whole minutes and seconds', (highest, most, wanted) => expect(ticks(highest, most, 'time').map(formatMs)).toEqual(wanted));

  it('have steps that rise', () => TIME_STEPS_MS.slice(1).forEach((step, i) => expect(step).toBeGreaterThan(TIME_STEPS_MS[i] ?? 0)));

  it('go on beyond the largest step', () => expect(tickStep(1e18, 10, 'time')).toBe(1e17));
});

describe('ticks of a logarithmic axis', () => {
  it.each([
    [25_200_000, 5, 'decimal', [0, 1, 100, 10_000, 1_000_000]],
    [5_018, 5, 'decimal', [0, 1, 10, 100, 1000]],
    [9, 5, 'decimal', [0, 1]],
    [2 ** 33, 4, 'binary', [0, 1, 2 ** 10, 2 ** 20, 2 ** 30]],
    [0, 5, 'binary', [0]],
  ] as const)('up to %d are 0 and whole powers', (highest, most, kind, wanted) => expect(logTicks(highest, most, kind)).toEqual(wanted));
});
