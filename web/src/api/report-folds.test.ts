// Wrapper frames folded on the page: drawn cases, and random trees, which come back whole when every run is unfolded.
import { describe, expect, it } from 'vitest';
import { num, nums, object, record, refs } from './decode';
import { foldNodes } from './report-folds';

const shape = { count: num, parent: refs, function: refs, self: record(nums), total: record(nums), hidden: nums, path: nums, unfolded_by: nums };
const folded = object(shape);
const NAMES = ['main', 'load', 'new', 'zmalloc', 'start']; // from the third on wrappers
const WRAPPER = [false, false, true, true, true];

/** A tree of stacks, each the names from the root on; the n-th has a cost of n + 1, of blocks of 10 n bytes. */
function treeOf(stacks: readonly string[], variance: number | null = null): unknown {
  const parent: (number | null)[] = [null];
  const fn: (number | null)[] = [null];
  const cost = [0];
  const inverse = [0];
  const shortest = [0];
  const places = new Map([['', 0]]);
  stacks.forEach((stack, index) => {
    let at = 0;
    let path = '';
    for (const name of stack.split(' ')) {
      path += ` ${name}`;
      const known = places.get(path) ?? parent.length;
      if (known === parent.length) {
        places.set(path, known);
        parent.push(at);
        fn.push(NAMES.indexOf(name));
        cost.push(0);
        inverse.push(0);
        shortest.push(0);
      }
      at = known;
    }
    cost[at] = (cost[at] ?? 0) + index + 1;
    inverse[at] = (inverse[at] ?? 0) + (index + 1) / (10 * index + 1);
    shortest[at] = Math.min(shortest[at] || Infinity, 10 * index + 1);
  });
  const code = {
    functions: { id: NAMES.map((_, i) => i), name: NAMES, short: NAMES.map(() => null), module: NAMES.map(() => null), wrapper: WRAPPER },
    locations: { function: [], file: [], line: [], offset: [], wrapper: [] },
    modules: { path: [], name: [] },
    files: { path: [] },
  };
  const sizes = variance === null ? {} : { inverse_lengths: inverse, shortest_length: shortest };
  return { complete: true, ...(variance === null ? {} : { variance }), nodes: { ...sizes, count: parent.length, id: parent.map((_, place) => place), parent, function: fn, inlined: parent.map(() => false), self: { allocations: cost } }, code };
}

/** Each node as "names from the root: total +hidden". */
function drawn(raw: unknown, unfolded: ReadonlySet<number>, isBottomUp: boolean): readonly string[] {
  const nodes = folded(foldNodes(raw, unfolded, isBottomUp), 'nodes');
  const names: string[] = [];
  return nodes.parent.map((above, place) => {
    names.push(above === null ? '' : `${names[above] ?? ''} ${NAMES[nodes.function[place] ?? 0] ?? ''}`.trim());
    const hidden = nodes.hidden[place] ?? 0;
    return `${names[place] ?? ''}: ${nodes.total['allocations']?.[place] ?? 0}${hidden > 0 ? ` +${hidden}` : ''}`;
  }).slice(1);
}

function pathsOf(raw: unknown, unfolded: ReadonlySet<number>, isBottomUp: boolean): readonly number[] {
  return folded(foldNodes(raw, unfolded, isBottomUp), 'nodes').path.filter((path) => path > 0);
}

describe('wrapper frames', () => {
  it.each([
    [false, ['start main load zmalloc new', 'start main'], ['main: 3', 'main load: 1 +2'], ['main: 3', 'main load: 1', 'main load zmalloc: 1', 'main load zmalloc new: 1']],
    [false, ['main new zmalloc load', 'main new load'], ['main: 3', 'main new: 3 +1', 'main new load: 3'], ['main: 3', 'main new: 3', 'main new zmalloc: 1', 'main new zmalloc load: 1', 'main new load: 2']],
    [false, ['start new'], ['new: 1'], ['new: 1']],
    [true, ['zmalloc load main start', 'new load main'], ['load: 3 +1', 'load main: 3 +1'], ['zmalloc: 1', 'zmalloc load: 1', 'zmalloc load main: 1 +1', 'new: 2', 'new load: 2', 'new load main: 2']],
    [true, ['load zmalloc new main'], ['load: 1', 'load new: 1 +1', 'load new main: 1'], ['load: 1', 'load zmalloc: 1', 'load zmalloc new: 1', 'load zmalloc new main: 1']],
    [true, ['new start'], ['new: 1 +1'], ['new: 1', 'new start: 1']],
  ])('fold and unfold as in the server: bottom-up %s, %j', (isBottomUp, stacks, whenFolded, whenUnfolded) => {
    const raw = treeOf(stacks);
    expect(drawn(raw, new Set(), isBottomUp)).toEqual(whenFolded);
    const first = pathsOf(raw, new Set(), isBottomUp).slice(0, 1);
    expect(drawn(raw, new Set(first), isBottomUp)).toEqual(whenUnfolded);
  });

  it('have the errors of the stacks through them, wherever they are folded', () => {
    const stacks = ['start main load zmalloc new', 'start main', 'main load zmalloc', 'main new load'];
    const errors = object({ ...shape, self_errors: record(nums), total_errors: record(nums), inverse_lengths: nums, shortest_length: nums });
    for (const isBottomUp of [true, false]) {
      const raw = treeOf(stacks, 512);
      for (const unfolded of [new Set<number>(), new Set(pathsOf(raw, new Set(), isBottomUp))]) {
        const nodes = errors(foldNodes(raw, unfolded, isBottomUp), 'nodes');
        const below = nodes.parent.map((_, place) => nodes.parent.map((_other, other) => {
          let at: number | null = other;
          while (at !== null && at !== place) {
            at = nodes.parent[at] ?? null;
          }
          return at === place ? other : -1;
        }).filter((other) => other >= 0));
        below.forEach((inside, place) => {
          const lengths = inside.map((other) => nodes.shortest_length[other] ?? 0).filter((length) => length > 0);
          const inverse = inside.reduce((sum, other) => sum + (nodes.inverse_lengths[other] ?? 0), 0);
          const total = nodes.total['allocations']?.[place] ?? 0;
          const shortest = Math.min(...lengths);
          const seen = 2 * Math.sqrt(512 * Math.min(inverse, total / shortest));
          const octaves = Math.min(2 * Math.log2(Math.max(total / inverse / shortest, 1)), Math.log2(shortest));
          const wanted = Math.ceil(Math.hypot(seen, (3 * 512 * 8 / 9 / shortest) * octaves));
          expect(nodes.total_errors['allocations']?.[place]).toBe(total === 0 ? 0 : wanted);
        });
        expect(nodes.inverse_lengths.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1 + 2 / 11 + 3 / 21 + 4 / 31, 12);
        expect(nodes.self_errors['allocations']?.[0]).toBe(0);
      }
    }
    expect(foldNodes(treeOf(stacks), new Set(), false)['total_errors']).toBeUndefined();
  });

  it('come back when all are unfolded, and no cost is lost', () => {
    let state = 1;
    const below = (limit: number): number => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return Math.floor(state / 65536) % limit;
    };
    for (let round = 0; round < 100; round++) {
      const stacks = Array.from({ length: 12 }, () => Array.from({ length: 1 + below(7) }, () => NAMES[below(NAMES.length)] ?? '').filter((name, i, all) => name !== all[i - 1]).join(' '));
      const raw = treeOf(stacks);
      for (const isBottomUp of [true, false]) {
        const unfolded = new Set<number>();
        for (let paths = pathsOf(raw, unfolded, isBottomUp); paths.length > 0; paths = pathsOf(raw, unfolded, isBottomUp)) {
          expect(paths.some((path) => unfolded.has(path))).toBe(false);
          paths.forEach((path) => unfolded.add(path));
        }
        const nodes = folded(foldNodes(raw, unfolded, isBottomUp), 'nodes');
        expect(nodes.total['allocations']?.[0]).toBe(78);
        if (isBottomUp) { // top-down begins inside of the outermost wrappers
          const whole = object({ nodes: object({ count: num, function: refs, parent: refs }) })(raw, 'tree').nodes;
          expect(nodes.count).toBe(whole.count);
        }
      }
    }
  });
});
