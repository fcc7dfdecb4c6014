// An RSS breakdown, and the moment nearest to a click.
import { describe, expect, it } from 'vitest';
import { kindsAt, lookBars, mergeTimes, nearest, placeAt, splitParts } from './rss-breakdown';

describe('a split', () => {
  const tables = {
    kinds: { key: ['live', 'file', 'new_kind'], phrase: ['live heap blocks', 'files'] },
    breakdowns: { columns: { live_bytes: [1, 2], file_bytes: [30, 40], time_ms: [0, 9] } },
  };
  it('has its kinds in the order of the answer, whatever they are', () => {
    expect(splitParts(tables, 1)).toEqual([
      { key: 'live', label: 'live heap blocks', bytes: 2, index: 0 },
      { key: 'file', label: 'files', bytes: 40, index: 1 },
      { key: 'new_kind', label: 'new_kind', bytes: 0, index: 2 },
    ]);
  });
});

describe('the bars of looks', () => {
  it.each([
    [[], 100],
    [[50], 100],
    [[0, 1, 2, 900], 1000],
    [[100, 900, 1500], 1500],
  ])('of %o never touch, and each covers its moment', (looks, length) => {
    const bars = lookBars(looks, length);
    expect(looks.map(bars.rowAt)).toEqual(looks.map((_, row) => row));
    expect([...bars.times].sort((a, b) => a - b)).toEqual(bars.times);
    looks.slice(1).forEach((look, i) => expect(bars.rowAt((look + (looks[i] ?? 0)) / 2)).toBe(-1));
  });
});

describe('kinds of pages', () => {
  const column = (...values: (number | null)[]): (number | null)[] => values;
  it('are unknown where a file has none of them', () => {
    const samples = { anonymous_bytes: column(0, 5, null), file_bytes: column(0, 0, 4), shmem_bytes: column(0, 2, 4) };
    expect(kindsAt(samples, 0)).toBe(null);
    expect(kindsAt(samples, 1)).toEqual({ anonymous: 5, file: 0, shmem: 2 });
    expect(kindsAt(samples, 2)).toBe(null);
  });
});

it('columns of different times stand on one axis', () => {
  const times = mergeTimes([100, 900], [50, 100, 1500]);
  expect(times).toEqual([50, 100, 900, 1500]);
  expect(placeAt(times, [100, 900], [7, 0])).toEqual([null, 7, 0, null]);
});

describe('the nearest moment', () => {
  const times = [100, 900, 1500];
  it.each([
    [0, 0],
    [499, 0],
    [500, 0],
    [501, 1],
    [1e9, 2],
  ])('to %d is in row %d', (ms, row) => expect(nearest(times, ms, () => true)).toBe(row));
  it('is one of those that pass', () => {
    expect(nearest(times, 100, (row) => row > 0)).toBe(1);
    expect(nearest(times, 100, () => false)).toBe(-1);
    expect(nearest([], 100, () => true)).toBe(-1);
  });
});
