// Names, partly loaded trees, stacked areas.
import { describe, expect, it } from 'vitest';
import { distinctLabels, editorLink, fileLine, functionName, locationName, splitScope, type CodeTable } from './code';
import { costMeaning, costTitle, type LiveWhen } from './cost';
import { stackUp } from './stacked';
import type { TreeNodes } from './tree';
import { EMPTY_TREE, hangIn, setOpen, visibleRows } from './tree-rows';

const CODE: CodeTable = {
  functions: {
    id: [40, 41, 42],
    name: ['(anonymous namespace)::run(int)', '', 'plain'],
    short: ['(anonymous namespace)::run', null, null],
    module: [0, 0, null],
    wrapper: [0, 0, 0],
  },
  locations: { function: [0, 1, null], file: [0, null, null], line: [7, 0, 0], offset: ['', '0x4f2', '0x1'], wrapper: [0, 0, 1] },
  modules: { path: ['/usr/lib/libx.so.1'], name: ['libx.so.1'] },
  files: { path: ['/src/a b/x.cpp'] },
};

describe('blocks that are not freed', () => {
  it('are leaked only when their process has ended', () => {
    for (const when of ['end', 'then', 'now', 'stop'] satisfies LiveWhen[]) {
      for (const cost of ['live_bytes', 'live_blocks']) {
        expect([when, /^Leaked/.test(costTitle(cost, when))]).toEqual([when, when === 'end']);
        expect([when, costMeaning(cost, when).includes('at the end')]).toEqual([when, when === 'end']);
      }
    }
  });
});

describe('names', () => {
  it('are short in labels and whole in titles', () => {
    const name = functionName(CODE, 0);
    expect(name).toMatchObject({ id: 40, key: '(anonymous namespace)::run(int)', label: 'run', full: '(anonymous namespace)::run(int)', module: 'libx.so.1' });
  });
  it('of unknown code are module and offset, and an id to ask for', () => {
    expect(locationName(CODE, 1)).toMatchObject({ label: 'libx.so.1+0x4f2', key: '#41' });
    expect(locationName(CODE, 2)).toMatchObject({ label: '0x1', id: null });
    expect(locationName(CODE, null).label).toBe('unknown');
  });
  it('have a place', () => {
    expect(fileLine(locationName(CODE, 0))).toBe('x.cpp:7');
    expect(fileLine(locationName(CODE, 1))).toBe('');
  });
});

describe('scopes of names', () => {
  it.each([
    ['main', '', 'main'],
    ['v8::internal::Heap::Grow', 'v8::internal::Heap::', 'Grow'],
    ['v8::internal::Grow(std::string, a::b)', 'v8::internal::', 'Grow(std::string, a::b)'],
    ['a::b<c::d>::run', 'a::b<c::d>::', 'run'],
    ['a::b<c::d>', 'a::', 'b<c::d>'],
    ['(anonymous namespace)::run', '(anonymous namespace)::', 'run'],
    ['a::(anonymous class)::operator()', 'a::(anonymous class)::', 'operator()'],
    ['a::operator<', 'a::', 'operator<'],
    ['a::f [b<1> >, c::d]', 'a::', 'f [b<1> >, c::d]'],
    ['run(::', '', 'run(::'],
    ['::', '::', ''],
    ['', '', ''],
  ])('%s is %s and %s', (label, scope, last) => expect(splitScope(label)).toEqual([scope, last]));
});

describe('labels of functions with one short name', () => {
  it.each([
    ['load', ['load<int>()', 'load<char>()'], ['load<int>', 'load<char>']],
    ['f', ['(anonymous namespace)::f(int)', 'f(char)'], ['f(int)', 'f(char)']],
    ['a::f', ['a::f()', 'a::f(int)'], ['a::f()', 'a::f(int)']],
    ['a::shard::insert', ['a::shard<b::policy<1> >::insert(int)', 'a::shard<b::policy<12> >::insert(int)'], ['a::shard::insert [policy<1>]', 'a::shard::insert [policy<12>]']],
    ['get', ['x::left* get<int>(x::left*)', 'x::right* get<int>(x::right*)'], ['get [left* get<int>(x::left]', 'get [right* get<int>(x::right]']],
    ['get', [`get(${'a'.repeat(99)})`, `get(${'b'.repeat(99)})`].map((name) => `v ${name}`), [`get(${'a'.repeat(99)})`, `get(${'b'.repeat(99)})`]],
    ['g', [`g<q, ${'a'.repeat(99)}>`, `g<q, ${'b'.repeat(99)}>`], [`g [${'a'.repeat(24)}…${'a'.repeat(24)}]`, `g [${'b'.repeat(24)}…${'b'.repeat(24)}]`]],
  ])('%s: %j are %j', (short, wholes, labels) => expect(distinctLabels(short, wholes)).toEqual(labels));
  it('differ in one table', () => {
    const code = { ...CODE, functions: { id: [1, 2, 3], name: ['void work<1>(int)', 'void work<2>(int)', 'rest'], short: ['work', 'work', null], module: [0, 0, 0], wrapper: [0, 0, 0] } };
    expect([0, 1, 2].map((index) => functionName(code, index).label)).toEqual(['work<1>', 'work<2>', 'rest']);
  });
});

describe('editor links', () => {
  const name = locationName(CODE, 0);
  it.each([
    ['vscode://file/%f:%l:%c', 'vscode://file//src/a%20b/x.cpp:7:1'],
    ['javascript:alert(%l)', null],
    ['JavaScript:alert(%l)', null],
    ['data:text/html,%f', null],
    ['no scheme %f', null],
    ['', null],
    [null, null],
  ])('pattern %j gives %j', (pattern, link) => expect(editorLink(pattern, name)).toBe(link));
  it('need an absolute path', () => expect(editorLink('x:%f', { ...name, file: 'rel/x.c' })).toBeNull());
});

function nodes(ids: readonly number[], parents: readonly (number | null)[], childCounts: readonly number[]): TreeNodes {
  const values = { cost: ids.map((id) => id * 10) };
  return {
    count: ids.length, id: ids, parent: parents, depth: ids.map(() => 0), function: ids.map(() => 0), inlined: ids.map(() => 0),
    child_count: childCounts, self: values, total: values, hidden: null, path: null, unfolded_by: null, matched: null, old_self: null, self_errors: null, total_errors: null, old_total_errors: null, old_total: null,
  };
}

describe('a tree that is known in parts', () => {
  const name = (): ReturnType<typeof functionName> => functionName(CODE, 0);
  const first = hangIn(EMPTY_TREE, nodes([0, 1, 2], [null, 0, 0], [2, 2, 0]), name, (row) => row === 0);

  it('shows its first level at once', () => {
    expect(visibleRows(first)).toEqual([{ id: 1, level: 0 }, { id: 2, level: 0 }]);
    expect(first.nodes.get(1)).toMatchObject({ parent: 0, childCount: 2, total: { cost: 10 } });
  });
  it('hangs children in where they belong, and keeps parents', () => {
    const more = setOpen(hangIn(first, nodes([1, 5, 6], [null, 0, 0], [2, 0, 0]), name, (row) => row === 0), 1, true);
    expect(visibleRows(more).map((row) => row.id)).toEqual([1, 5, 6, 2]);
    expect(more.nodes.get(1)?.parent).toBe(0);
    expect(visibleRows(setOpen(more, 1, false)).map((row) => row.id)).toEqual([1, 2]);
  });
  it('shows nothing below what is open but not known', () => {
    expect(visibleRows(setOpen(first, 1, true)).map((row) => row.id)).toEqual([1, 2]);
  });
});

it('stacked areas end at the sum of all layers', () => {
  expect(stackUp([{ label: 'a', values: [1, 2] }, { label: 'b', values: [3, 0] }, { label: 'c', values: [0, 5] }])).toEqual([[1, 2], [4, 2], [4, 7]]);
  expect(stackUp([])).toEqual([]);
});
