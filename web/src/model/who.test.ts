// The pickers: every id once, names of several threads first, and only values that the filter reads
// correctly.
import { describe, expect, it } from 'vitest';
import { processChoices, threadChoices, withCurrent } from './who';

const THREADS = {
  count: 7,
  thread_id: [10, 10, 11, 12, 13, 14, 15],
  pid: [10, 10, 10, 10, 13, 13, 13],
  name: ['', 'main', 'worker', 'worker', 'worker', '77', '77'],
};

describe('threads', () => {
  it('are each there once, shared names first', () => {
    expect(threadChoices(THREADS, '')).toEqual([
      { value: 'worker', label: 'all 3 called worker' },
      { value: '10', label: 'main (10)' },
      { value: '11', label: 'worker (11)' },
      { value: '12', label: 'worker (12)' },
      { value: '13', label: 'worker (13)' },
      { value: '14', label: '77 (14)' },
      { value: '15', label: '77 (15)' },
    ]);
  });
  it('are those of the process', () => {
    expect(threadChoices(THREADS, '13').map((choice) => choice.value)).toEqual(['13', '14', '15']);
    expect(threadChoices(THREADS, '99')).toEqual([]);
  });
  it.each(['*', 'a?', '12', ''])('a name that reads as a pattern or an id is no choice: %j', (name) => {
    const table = { count: 2, thread_id: [1, 2], pid: [1, 1], name: [name, name] };
    expect(threadChoices(table, '').map((choice) => choice.value)).toEqual(['1', '2']);
  });
});

it('processes have all names that they had', () => {
  const table = { count: 4, pid: [5, 6, 6, 7], executable: ['/bin/sh', '', '/opt/app', ''], command_line: ['sh -c x', '', 'app', ''] };
  expect(processChoices(table)).toEqual([
    { value: '5', label: 'sh (5)' },
    { value: '6', label: 'app (6)' },
    { value: '7', label: 'unknown (7)' },
  ]);
});

it('what is in force is always among the choices', () => {
  const choices = [{ value: '1', label: 'one' }];
  expect(withCurrent(choices, '1')).toBe(choices);
  expect(withCurrent(choices, '')).toBe(choices);
  expect(withCurrent(choices, 'pool*')).toEqual([{ value: 'pool*', label: 'pool*' }, ...choices]);
});
