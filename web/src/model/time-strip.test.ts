// Paths of the time line, and what is there at a time.
import { describe, expect, it } from 'vitest';
import { areaPath, lastAt, stepPath } from './time-strip';

const SCALE = { maxMs: 200, maxValue: 94 };

describe('paths', () => {
  it('of an area begin and end at its foot', () => {
    expect(areaPath([100, 200], [47, 94], SCALE)).toBe('M0 100L500.0 53.0L1000.0 6.0L1000.0 100Z');
    expect(areaPath([], [], SCALE)).toBe('M0 100L0.0 100Z');
  });
  it('of steps hold a value until the next, and the last to the end', () => {
    expect(stepPath([0, 100], [94, 47], SCALE)).toBe('M0.0 6.0H500.0V53.0H1000.0');
    expect(stepPath([0, 100], [94, 47], SCALE, 150)).toBe('M0.0 6.0H500.0V53.0H750.0');
    expect(stepPath([], [], SCALE)).toBe('');
  });
});

it.each([
  [-1, -1],
  [0, 0],
  [9, 0],
  [10, 1],
  [99, 2],
])('at %i the latest is %i', (ms, place) => expect(lastAt([0, 10, 20], ms)).toBe(place));

it('has nothing in an empty column', () => expect(lastAt([], 5)).toBe(-1));
