// Columns over time: rates, and a second recording drawn over the first.
import { describe, expect, it } from 'vitest';
import { chartKind, CHARTS, extendTimes, perSecond, valuesAt } from './over-time';

const SLICES = { start_ms: [0, 100, 200], end_ms: [100, 200, 250] };

describe('valuesAt', () => {
  const values = [1, 2, 3];
  it.each([
    [[0, 99], [null, null]],
    [[100, 150, 199], [1, 1, 1]],
    [[200, 250], [2, 3]],
    [[251], [null]],
  ])('a state at %j is what stood last: %j', (times, wanted) => expect(valuesAt(times, SLICES, values, true)).toEqual(wanted));
  it.each([
    [[1, 100], [1, 1]],
    [[101, 200], [2, 2]],
    [[201, 250], [3, 3]],
    [[251], [null]],
  ])('a sum at %j is that of the slice around it: %j', (times, wanted) => expect(valuesAt(times, SLICES, values, false)).toEqual(wanted));
  it('gives back a column at its own times, whatever it is', () => {
    for (const isState of [true, false]) {
      expect(valuesAt(SLICES.end_ms, SLICES, values, isState)).toEqual(values);
    }
    expect(valuesAt([5], { start_ms: [], end_ms: [] }, [], true)).toEqual([null]);
  });
});

it('a rate is per second of its own slice', () => {
  expect(perSecond([10, 10, 10], SLICES)).toEqual([100, 100, 200]);
  expect(perSecond([7], { start_ms: [5], end_ms: [5] })).toEqual([0]);
});

it('times are extended by what lies beyond', () => {
  expect(extendTimes([1, 5], [2, 5, 7, 9])).toEqual([1, 5, 7, 9]);
  expect(extendTimes([], [0, 3])).toEqual([0, 3]);
});

it('every chart is found by its name, others are the heap', () => {
  for (const kind of CHARTS) {
    expect(chartKind(kind.value)).toBe(kind);
  }
  expect(chartKind('constructor').value).toBe('live_bytes');
});
