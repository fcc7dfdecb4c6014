// The parts of the filter that a view reports as not applicable.
import { describe, expect, it } from 'vitest';
import { START } from './address';
import { isFilteredBeyond, notApplied } from './filter-reach';

describe('notApplied', () => {
  it.each([
    ['summary', { from_ms: '5', function: 'f' }, ''],
    ['flame', { to_ms: '5', size_min_bytes: '8' }, ''],
    ['sizes', { function: 'f', process: '7' }, ''],
    ['sizes', { from_ms: '5' }, 'the time range'],
    ['leaks', { to_ms: '5' }, 'the time range'],
    ['charts', { from_ms: '5', lifetime_max_ms: '9' }, 'the time range, sizes and lifetimes'],
    ['peak', {}, ''],
    ['peak', { process: '7', from_ms: '5' }, 'the process, the time range'],
    ['rss', { process: '7' }, ''],
    ['rss', { function_regex: 'f', thread: '7' }, 'functions, files and modules, the thread'],
  ] as const)('%s under %o', (view, filter, names) => {
    const text = notApplied({ ...START, ...filter, view });
    expect(text === '' ? '' : /^Not applied here: ([^(]*) \(.*\)\.$/.exec(text)?.[1]).toBe(names);
  });
});

describe('isFilteredBeyond', () => {
  it('looks at every field but those that are kept', () => {
    expect(isFilteredBeyond(START, [])).toBe(false);
    expect(isFilteredBeyond({ ...START, process: '7' }, ['process'])).toBe(false);
    expect(isFilteredBeyond({ ...START, process: '7', lifetime_min_ms: '1' }, ['process'])).toBe(true);
  });
});
