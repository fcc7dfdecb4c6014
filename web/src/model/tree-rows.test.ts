// Properties of a partly loaded call tree, for any order of opening and closing: every visible row
// occurs once, below its parent and one level deeper, and the totals of a level add up to the
// server's total of its parent.
import { describe, expect, it } from 'vitest';
import { randomNumbers } from '../base/random-numbers';
import { NO_CODE } from './code';
import { stackUp } from './stacked';
import { EMPTY_TREE, hangIn, setOpen, visibleRows, type PartialTree } from './tree-rows';

const SEEDS = Array.from({ length: 25 }, (_, seed) => seed + 1);

/** Three levels of three nodes, added one by one in a random order. */
function randomPartialTree(seed: number): PartialTree {
  const random = randomNumbers(seed);
  let tree = EMPTY_TREE;
  let known = [0];
  let next = 1;
  for (let step = 0; step < 12; step++) {
    const parent = known[Math.floor(random() * known.length)] ?? 0;
    if (!tree.children.has(parent)) {
      const ids = [next, next + 1, next + 2];
      next += 3;
      const costs = [30, 20, 10].map((cost) => cost + Math.floor(random() * 5));
      const total = [costs.reduce((sum, cost) => sum + cost, 0), ...costs];
      tree = hangIn(
        tree,
        {
          count: 4, id: [parent, ...ids], parent: [null, 0, 0, 0], depth: [0, 1, 1, 1], function: [0, 0, 0, 0], inlined: [0, 0, 0, 0],
          child_count: [3, 3, 3, 3], self: { cost: [0, ...costs] }, total: { cost: total }, hidden: null, path: null, unfolded_by: null, matched: null, old_self: null, self_errors: null, total_errors: null, old_total_errors: null, old_total: null,
        },
        () => NO_CODE,
        (row) => row === 0,
      );
      known = [...known, ...ids];
    }
    tree = setOpen(tree, parent, random() < 0.7 || parent === 0);
  }
  return tree;
}

describe('visible rows', () => {
  it.each(SEEDS)('seed %d: stand below their parents, each once', (seed) => {
    const tree = randomPartialTree(seed);
    const rows = visibleRows(tree);
    const place = new Map(rows.map((row, i) => [row.id, i]));
    expect(place.size).toBe(rows.length);
    for (const [i, { id, level }] of rows.entries()) {
      const parent = tree.nodes.get(id)?.parent ?? -1;
      if (parent !== 0) {
        expect(place.get(parent)).toBeLessThan(i);
        expect(rows[place.get(parent) ?? 0]?.level).toBe(level - 1);
      } else {
        expect(level).toBe(0);
      }
      expect(tree.open.has(parent)).toBe(true);
    }
  });

  it.each(SEEDS)('seed %d: closing hides what is below and nothing else, opening brings it back', (seed) => {
    const tree = randomPartialTree(seed);
    const before = visibleRows(tree).map((row) => row.id);
    for (const id of tree.open) {
      const closed = visibleRows(setOpen(tree, id, false)).map((row) => row.id);
      expect(before.filter((other) => closed.includes(other))).toEqual(closed);
      expect(visibleRows(setOpen(setOpen(tree, id, false), id, true)).map((row) => row.id)).toEqual(before);
    }
  });

  it.each(SEEDS)('seed %d: what is not known stays what it was when more comes', (seed) => {
    const tree = randomPartialTree(seed);
    for (const [id, children] of tree.children) {
      for (const child of children) {
        expect(tree.nodes.get(child)?.parent).toBe(id);
        expect(tree.nodes.get(child)?.total['cost']).toBeGreaterThan(0);
      }
    }
  });
});

describe('stacked areas', () => {
  it.each(SEEDS)('seed %d: edges rise from layer to layer, each by its own values, up to the sum', (seed) => {
    const random = randomNumbers(seed);
    const layers = Array.from({ length: 1 + Math.floor(random() * 8) }, () => ({ label: '', values: Array.from({ length: 30 }, () => Math.floor(random() * 1e12)) }));
    const edges = stackUp(layers);
    for (let i = 0; i < 30; i++) {
      let sum = 0;
      layers.forEach((layer, place) => {
        sum += layer.values[i] ?? 0;
        expect(edges[place]?.[i]).toBe(sum);
      });
    }
  });
});
