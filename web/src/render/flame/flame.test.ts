// Properties of the flame graph's layout, slice and hit test, on random trees. The oracles are
// simple and slow: they go over all frames, without an index.
import { describe, expect, it } from 'vitest';
import { hitFlame, neighbour } from './hit';
import { layoutFlame, type FlameLayout } from './layout';
import { randomNumbers } from '../../base/random-numbers';
import { randomTree } from './random-tree';
import { MIN_WIDTH_PX, newSlice, sliceFlame } from './slice';

const SEEDS = Array.from({ length: 30 }, (_, seed) => seed + 1);

function laidOut(seed: number, count = 600): { layout: FlameLayout; self: readonly number[]; total: readonly number[] } {
  const nodes = randomTree(seed, count);
  const total = nodes.total['cost'] ?? [];
  return { layout: layoutFlame(nodes, total), self: nodes.self['cost'] ?? [], total };
}

function at(column: ArrayLike<number>, index: number): number {
  return column[index] ?? Number.NaN;
}

describe('layout', () => {
  it.each(SEEDS)('seed %d: every frame is as wide as its total, and lies inside its parent', (seed) => {
    const { layout, total } = laidOut(seed);
    for (let i = 0; i < layout.count; i++) {
      expect(at(layout.right, i) - at(layout.left, i)).toBe(at(total, i));
      const parent = at(layout.parent, i);
      if (parent >= 0) {
        expect(at(layout.left, i)).toBeGreaterThanOrEqual(at(layout.left, parent));
        expect(at(layout.right, i)).toBeLessThanOrEqual(at(layout.right, parent));
        expect(at(layout.row, i)).toBe(at(layout.row, parent) + 1);
      }
    }
  });

  it.each(SEEDS)('seed %d: the widths of the children and what is free beside them make up the parent', (seed) => {
    const { layout, self } = laidOut(seed);
    const sums = new Float64Array(layout.count);
    for (let i = 1; i < layout.count; i++) {
      sums[at(layout.parent, i)] = at(sums, at(layout.parent, i)) + at(layout.right, i) - at(layout.left, i);
    }
    for (let i = 0; i < layout.count; i++) {
      expect(at(sums, i) + at(self, i)).toBe(at(layout.right, i) - at(layout.left, i));
    }
  });

  it.each(SEEDS)('seed %d: the frames of a row are sorted and do not overlap', (seed) => {
    const { layout } = laidOut(seed);
    for (let row = 0; row < layout.rows; row++) {
      for (let place = at(layout.rowStart, row) + 1; place < at(layout.rowStart, row + 1); place++) {
        const before = at(layout.rowFrames, place - 1);
        expect(at(layout.left, at(layout.rowFrames, place))).toBeGreaterThanOrEqual(at(layout.right, before));
      }
    }
    expect(new Set(layout.rowFrames).size).toBe(layout.count);
  });

  it('a part of a tree begins at row 0', () => {
    const nodes = randomTree(3, 50);
    const deeper = { ...nodes, depth: nodes.depth.map((depth) => depth + 7) };
    expect([...layoutFlame(deeper, nodes.total['cost'] ?? []).row]).toEqual([...nodes.depth]);
  });

  it('an unknown cost has no width', () => {
    const nodes = randomTree(20, 3);
    const layout = layoutFlame(nodes, nodes.id.map(() => Number.NaN));
    expect([...layout.left, ...layout.right].every((x) => x === 0)).toBe(true);
  });

  it('nothing has no rows', () => {
    const none = { ...randomTree(1, 1), count: 0, id: [], parent: [], depth: [] };
    expect(layoutFlame(none, []).rows).toBe(0);
  });
});

describe('slice', () => {
  it.each(SEEDS)('seed %d: has every frame of at least half a pixel, where it lies', (seed) => {
    const { layout } = laidOut(seed);
    const random = randomNumbers(seed + 1000);
    const whole = at(layout.right, 0);
    const from = Math.floor(random() * whole * 0.8);
    const to = from + Math.max(1, Math.floor(random() * (whole - from)));
    const widthPx = 900;
    const slice = newSlice();
    sliceFlame(layout, { from, to, widthPx, firstRow: 0, lastRow: layout.rows }, slice);
    const scale = widthPx / (to - from);
    const seen = new Map(Array.from({ length: slice.count }, (_, i) => [at(slice.frame, i), i]));
    for (let frame = 0; frame < layout.count; frame++) {
      const left = Math.max(at(layout.left, frame), from);
      const right = Math.min(at(layout.right, frame), to);
      const width = (right - left) * scale;
      const place = seen.get(frame);
      expect(place !== undefined).toBe(width >= MIN_WIDTH_PX);
      if (place !== undefined) {
        expect(at(slice.x, place)).toBeCloseTo((left - from) * scale, 2);
        expect(at(slice.width, place)).toBeCloseTo(width, 2);
      }
    }
  });

  it.each(SEEDS)('seed %d: a zoom keeps the totals: the zoomed frame and all above it fill the width', (seed) => {
    const { layout } = laidOut(seed);
    const frame = Math.floor(randomNumbers(seed)() * layout.count);
    const slice = newSlice();
    const view = { from: at(layout.left, frame), to: at(layout.right, frame), widthPx: 800, firstRow: 0, lastRow: at(layout.row, frame) };
    sliceFlame(layout, view, slice);
    expect(slice.count).toBe(at(layout.row, frame) + 1);
    for (let i = 0; i < slice.count; i++) {
      expect(at(slice.x, i)).toBe(0);
      expect(at(slice.width, i)).toBe(800);
    }
    expect(at(slice.frame, slice.count - 1)).toBe(frame);
  });

  it('rows that are not in sight are left out', () => {
    const { layout } = laidOut(5);
    const slice = newSlice();
    sliceFlame(layout, { from: 0, to: at(layout.right, 0), widthPx: 1000, firstRow: 2, lastRow: 3 }, slice);
    const rows = new Set(Array.from({ length: slice.count }, (_, i) => at(layout.row, at(slice.frame, i))));
    expect([...rows].sort()).toEqual([2, 3]);
  });

  it('an empty window shows nothing', () => {
    const { layout } = laidOut(5);
    const slice = newSlice();
    sliceFlame(layout, { from: 7, to: 7, widthPx: 1000, firstRow: 0, lastRow: 9 }, slice);
    expect(slice.count).toBe(0);
  });
});

describe('speed', () => {
  /** The number of examined edges of frames; a clock would also measure other load. */
  function readsOf(layout: FlameLayout, firstRow: number): number {
    let reads = 0;
    const right = new Proxy(layout.right, {
      get: (column, key) => {
        reads++;
        return typeof key === 'string' ? column[Number(key)] : undefined;
      },
    });
    const slice = newSlice();
    sliceFlame({ ...layout, right }, { from: 0, to: at(layout.right, 0), widthPx: 1920, firstRow, lastRow: firstRow + 40 }, slice);
    return reads;
  }

  it.each([0, 8])('a slice of 100,000 frames from row %d looks at few of them', (firstRow) => {
    const nodes = randomTree(11, 100_000, 3);
    const layout = layoutFlame(nodes, nodes.total['cost'] ?? []);
    expect(layout.count).toBeGreaterThan(90_000);
    expect(readsOf(layout, firstRow)).toBeLessThan(40_000);
  });

  it('what lies below narrow frames is not looked at: a comb of 200,000 teeth costs no more than their first row', () => {
    const count = 200_000;
    const comb = {
      ...randomTree(1, 1), count: 3 * count + 1, id: [],
      parent: [null, ...Array.from({ length: 3 * count }, (_, i) => (i % 3 === 0 ? 0 : i))],
      depth: [0, ...Array.from({ length: 3 * count }, (_, i) => 1 + (i % 3))],
    };
    const layout = layoutFlame(comb, [count, ...Array.from({ length: 3 * count }, () => 1)]);
    expect(layout.rows).toBe(4);
    // One gallop for each half pixel of the first row of teeth, and none below.
    expect(readsOf(layout, 0)).toBeLessThan(2 * 1920 * 2 * Math.log2(count / 1920));
  });
});

describe('hit', () => {
  it.each(SEEDS)('seed %d: finds what a search over all frames finds', (seed) => {
    const { layout } = laidOut(seed, 300);
    const random = randomNumbers(seed + 77);
    for (let i = 0; i < 200; i++) {
      const row = Math.floor(random() * (layout.rows + 2)) - 1;
      const x = random() * at(layout.right, 0);
      let wanted = -1;
      for (let frame = 0; frame < layout.count; frame++) {
        if (at(layout.row, frame) === row && at(layout.left, frame) <= x && x < at(layout.right, frame)) {
          wanted = frame;
        }
      }
      expect(hitFlame(layout, row, x)).toBe(wanted);
    }
  });

  it.each(SEEDS)('seed %d: arrow keys go to the parent and back to the widest child', (seed) => {
    const { layout } = laidOut(seed, 300);
    for (let frame = 0; frame < layout.count; frame++) {
      const child = neighbour(layout, frame, 'child');
      if (child !== frame) {
        expect(neighbour(layout, child, 'parent')).toBe(frame);
      }
      const next = neighbour(layout, frame, 'next');
      if (next !== frame) {
        expect(neighbour(layout, next, 'previous')).toBe(frame);
      }
    }
    expect(neighbour(layout, 0, 'parent')).toBe(0);
  });
});
