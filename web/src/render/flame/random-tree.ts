// Random call trees for property tests: depth-first, siblings highest first, totals that add up. A
// seed always gives the same tree.
import { randomNumbers } from '../../base/random-numbers';
import type { TreeNodes } from '../../model/tree';

interface Open {
  readonly row: number;
  readonly depth: number;
  readonly total: number;
}

function split(total: number, parts: number, random: () => number): number[] {
  const cuts = Array.from({ length: parts }, () => Math.floor(random() * total)).sort((a, b) => a - b);
  // The rest behind the last cut is the self cost of the parent.
  return cuts.map((cut, i) => cut - (cuts[i - 1] ?? 0)).filter((part) => part > 0).sort((a, b) => b - a);
}

export function randomTree(seed: number, maxCount: number, maxChildren = 4): TreeNodes {
  const random = randomNumbers(seed);
  const id: number[] = [];
  const parent: (number | null)[] = [];
  const depth: number[] = [];
  const total: number[] = [];
  const children: number[] = [];
  const self: number[] = [];
  const open: (Open & { readonly parent: number | null })[] = [{ row: 0, depth: 0, total: 2 ** 40, parent: null }];
  for (let next = open.pop(); next !== undefined && id.length < maxCount; next = open.pop()) {
    const row = id.length;
    const parts = split(next.total, 1 + Math.floor(random() * maxChildren), random);
    const kept = id.length + open.length + parts.length < maxCount ? parts : [];
    id.push(row);
    parent.push(next.parent);
    depth.push(next.depth);
    total.push(next.total);
    children.push(kept.length);
    self.push(next.total - kept.reduce((sum, part) => sum + part, 0));
    for (let i = kept.length - 1; i >= 0; i--) {
      open.push({ row: 0, depth: next.depth + 1, total: kept[i] ?? 0, parent: row });
    }
  }
  return {
    count: id.length,
    id,
    parent,
    depth,
    function: id.map((value) => value % 50),
    inlined: id.map(() => 0),
    child_count: children,
    self: { cost: self },
    total: { cost: total },
    hidden: null,
    path: null,
    unfolded_by: null,
    matched: null,
    old_total: null,
    old_self: null,
    self_errors: null,
    total_errors: null,
    old_total_errors: null,
  };
}
