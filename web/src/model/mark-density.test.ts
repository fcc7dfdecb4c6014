// Marks are counted in the column of their time, and labels never lie on each other.
import { describe, expect, it } from 'vitest';
import { countColumns, labelRows, shades } from './mark-density';

describe('countColumns', () => {
  it('counts each mark once, those at the ends in the first and the last column', () => {
    expect(countColumns([0, 1, 49, 50, 100], 100, 4)).toEqual([2, 1, 1, 1]);
  });

  it('keeps all marks of any run', () => {
    const times = Array.from({ length: 5000 }, (_, i) => (i * i) % 6400);
    expect(countColumns(times, 6400, 1000).reduce((sum, count) => sum + count, 0)).toBe(5000);
  });
});

describe('shades', () => {
  it('shows one mark beside thousands, and none as none', () => {
    expect(shades([0, 1, 4000, 2000])).toEqual([0, 1, 4, 2]);
  });
});

describe('labelRows', () => {
  it('puts labels that touch into other rows, and leaves out what has no room', () => {
    const places = [{ left: 0, right: 50 }, { left: 40, right: 90 }, { left: 45, right: 60 }, { left: 51, right: 70 }];
    expect(labelRows(places, 2)).toEqual([0, 1, -1, 0]);
  });
});
