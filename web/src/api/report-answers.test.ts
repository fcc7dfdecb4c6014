// Queries to a report file: lookups, truncation and refusals.
import { describe, expect, it } from 'vitest';
import { num, nums, object, record, refs, type Decode } from './decode';
import { narrowHistogram, narrowLeaks, narrowSeries, narrowTree, NotInReport, pickRows } from './report-answers';
import { answerFrom, problemOf, type AnswerSource } from './report-ask';

const anything: Decode<unknown> = (value) => value;
const NAMES = ['main', 'load<int>', 'PARSE', 'push', 'malloc'];

/**
 * A tree of `count` nodes in which every parent costs at least as much as its children; ids differ
 * from positions.
 */
function randomTree(count: number, seed: number): { readonly raw: unknown; readonly parent: readonly number[]; readonly value: readonly number[] } {
  let state = seed;
  const below = (limit: number): number => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state % limit;
  };
  const parent = Array.from({ length: count }, (_, place) => (place === 0 ? -1 : below(place)));
  const value = parent.map(() => below(5));
  for (let place = count - 1; place > 0; place--) {
    const above = parent[place] ?? 0;
    value[above] = (value[above] ?? 0) + (value[place] ?? 0);
  }
  const raw = {
    complete: true,
    total_nodes: count,
    nodes: {
      count,
      id: parent.map((_, place) => place * 3),
      parent: parent.map((above) => (above < 0 ? null : above)),
      depth: parent.map(() => 0),
      function: parent.map((_, place) => (place === 0 ? null : place % NAMES.length)),
      total: { peak_bytes: value },
    },
    search: null,
    code: {
      functions: { id: NAMES.map((_, i) => i), name: NAMES, short: NAMES.map(() => null), module: NAMES.map((_, i) => (i === 4 ? 0 : null)), wrapper: NAMES.map(() => 0) },
      locations: { function: [], file: [], line: [], offset: [], wrapper: [] },
      modules: { path: ['/lib/libc.so.6'], name: ['libc.so.6'] },
      files: { path: [] },
    },
  };
  return { raw, parent, value };
}

const shown = object({ nodes: object({ count: num, id: nums, parent: refs, total: object({ peak_bytes: nums }) }) });

describe('a tree of a report', () => {
  it('gives the highest nodes, each with its parent, siblings highest first', () => {
    for (let seed = 1; seed < 60; seed++) {
      const { raw, value } = randomTree(40, seed);
      for (const limit of [1, 2, 7, 39, 40, 100]) {
        const { nodes } = shown(narrowTree(raw, { limit: String(limit) }), 'tree');
        expect(nodes.count).toBe(Math.min(limit, 40));
        expect(nodes.parent[0]).toBe(null);
        const lowest = Math.min(...nodes.total.peak_bytes);
        const left = value.filter((_, place) => !nodes.id.includes(place * 3));
        expect(Math.max(0, ...left)).toBeLessThanOrEqual(lowest);
        nodes.parent.forEach((above, place) => {
          expect(place === 0 || (above !== null && above < place)).toBe(true);
        });
        for (let place = 1; place < nodes.count; place++) {
          const next = nodes.parent.indexOf(nodes.parent[place] ?? null, place + 1);
          expect(next < 0 || (nodes.total.peak_bytes[next] ?? 0) <= (nodes.total.peak_bytes[place] ?? 0)).toBe(true);
        }
      }
    }
  });

  it('begins where it is asked to, and goes as deep', () => {
    const { raw, parent } = randomTree(40, 7);
    parent.forEach((_, root) => {
      const { nodes } = shown(narrowTree(raw, { root: String(root * 3), depth: '1', limit: '0' }), 'tree');
      const children = parent.flatMap((above, place) => (above === root ? [place * 3] : []));
      expect([...nodes.id].sort((a, b) => a - b)).toEqual([root * 3, ...children].sort((a, b) => a - b));
    });
    expect(() => narrowTree(raw, { root: '1' })).toThrow(NotInReport);
  });

  it('leaves out what is below a share', () => {
    const { raw, value } = randomTree(40, 11);
    const { nodes } = shown(narrowTree(raw, { min_share: '0.2' }), 'tree');
    const least = Math.ceil(0.2 * (value[0] ?? 0));
    expect(nodes.count).toBe(value.filter((own, place) => place === 0 || own >= least).length);
  });

  it('counts what a search finds once, and not in a tree that was cut', () => {
    const { raw, parent, value } = randomTree(40, 3);
    const search = object({ search: object({ matched_nodes: num, totals: object({ peak_bytes: num }) }) });
    const isMatch = (place: number): boolean => place > 0 && place % NAMES.length === 2;
    const hasMatchAbove = (place: number): boolean => {
      const above = parent[place] ?? -1;
      return above >= 0 && (isMatch(above) || hasMatchAbove(above));
    };
    const found = search(narrowTree(raw, { search: 'parse' }), 'tree').search;
    const places = parent.map((_, place) => place).filter(isMatch);
    expect(found.matched_nodes).toBe(places.length);
    expect(found.totals.peak_bytes).toBe(places.filter((place) => !hasMatchAbove(place)).reduce((sum, place) => sum + (value[place] ?? 0), 0));
    expect(narrowTree({ ...record(anything)(raw, ''), complete: false }, { search: 'parse' })).toMatchObject({ search: null });
    expect(search(narrowTree(raw, { search: 'LIBC.SO' }), 'tree').search.matched_nodes).toBe(8);
  });
});

describe('tables of a report', () => {
  it('are picked by rows, with the tables inside', () => {
    expect(pickRows({ count: 3, a: [1, 2, 3], costs: { x: [4, 5, 6] } }, [2, 0])).toEqual({ count: 2, a: [3, 1], costs: { x: [6, 4] } });
  });

  it('of charts keep their sums when areas are left out', () => {
    const raw = { top: [{ values: [1, 2] }, { values: [3, 4] }, { values: [5, 6] }], rest: [7, 8] };
    expect(narrowSeries(raw, { top: '1' })).toEqual({ top: [{ values: [1, 2] }], rest: [15, 18] });
    expect(narrowSeries(raw, { top: '3' })).toEqual(raw);
    const sampled = { top: [{ values: [1], errors: [1] }, { values: [3], errors: [4] }], rest: [7], rest_errors: [3] };
    expect(narrowSeries(sampled, { top: '1' })).toEqual({ top: [{ values: [1], errors: [1] }], rest: [10], rest_errors: [5] });
    expect(narrowSeries(sampled, { top: '2' })).toEqual(sampled);
    const bars = { top: [{ blocks: [1], bytes: [10] }, { blocks: [2], bytes: [20] }], rest: { blocks: [3], bytes: [30] } };
    expect(narrowHistogram(bars, { top: '0' })).toEqual({ top: [], rest: { blocks: [6], bytes: [60] } });
  });

  it('of leaks are filtered by growth', () => {
    const raw = { total_count: 3, leaks: { count: 3, growth: ['late', 'bounded', 'late'], n: [1, 2, 3] } };
    expect(narrowLeaks(raw, { growth: 'late' })).toMatchObject({ total_count: 2, leaks: { count: 2, n: [1, 3] } });
    expect(narrowLeaks(raw, { limit: '1' })).toMatchObject({ total_count: 3, leaks: { count: 1, n: [1] } });
  });
});

describe('asking a report', () => {
  const held = new Map<string, unknown>([['meta?', { m: 1 }], ['threads?', { t: 1 }], ['threads?&thread=7', { t: 7 }]]);
  const source: AnswerSource = { has: (key) => held.has(key), get: (key) => Promise.resolve(held.get(key)) };

  it('finds what is there', async () => {
    expect(await answerFrom(source, 'meta', { thread: '7' })).toEqual({ m: 1 });
    expect(await answerFrom(source, 'threads', { costs: 'all', thread: '' })).toEqual({ t: 1 });
    expect(await answerFrom(source, 'threads', { thread: '7' })).toEqual({ t: 7 });
  });

  it.each([
    ['threads', { thread: '8' }, 'thread 8'],
    ['threads', { thread: '7', process: '1' }, 'not both'],
    ['threads', { function: 'f' }, 'by function'],
    ['summary', { from_ms: '0' }, 'time range'],
    ['summary', {}, 'leaves it out'],
    ['stacks', { node: '4' }, 'not in a report file'],
    ['nonsense', {}, 'not in a report file'],
  ])('refuses %s with %j in words', async (route, params, words) => {
    const error: unknown = await answerFrom(source, route, params).catch((caught: unknown) => caught);
    expect(problemOf(error)).toContain(words);
  });
});
