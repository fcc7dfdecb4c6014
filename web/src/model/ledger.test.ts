// A split of RSS, and the moment nearest to a click.
import { describe, expect, it } from 'vitest';
import { mergeTimes, nearest, placeAt, splitParts } from './ledger';

describe('a split', () => {
  const tables = {
    kinds: { key: ['live', 'file', 'new_kind'], phrase: ['live heap blocks', 'files'] },
    splits: { columns: { live_bytes: [1, 2], file_bytes: [30, 40], time_ms: [0, 9] } },
  };
  it('has its kinds in the order of the answer, whatever they are', () => {
    expect(splitParts(tables, 1)).toEqual([
      { key: 'live', label: 'live heap blocks', bytes: 2, index: 0 },
      { key: 'file', label: 'files', bytes: 40, index: 1 },
      { key: 'new_kind', label: 'new_kind', bytes: 0, index: 2 },
    ]);
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
