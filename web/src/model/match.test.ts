// Matching: every row of both tables once, only equal keys, and the maximal number of pairs.
import { describe, expect, it } from 'vitest';
import { randomNumbers } from '../base/random-numbers';
import { matchRows } from './match';

it('pairs equal keys in their order', () => {
  expect(matchRows(['a', 'b', 'a'], ['a', 'c', 'a', 'a'])).toEqual([
    { now: 0, old: 0 },
    { now: 1, old: null },
    { now: 2, old: 2 },
    { now: null, old: 1 },
    { now: null, old: 3 },
  ]);
});

describe('any two tables', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed))('seed %d', (seed) => {
    const random = randomNumbers(seed + 1);
    const table = (): string[] => Array.from({ length: Math.floor(random() * 30) }, () => 'abcdefg'[Math.floor(random() * 7)] ?? '');
    const [news, olds] = [table(), table()];
    const rows = matchRows(news, olds);
    const sorted = (side: 'now' | 'old'): number[] => rows.flatMap((row) => row[side] ?? []).sort((a, b) => a - b);
    expect(sorted('now')).toEqual([...news.keys()]);
    expect(sorted('old')).toEqual([...olds.keys()]);
    const count = (keys: readonly string[], key: string): number => keys.filter((other) => other === key).length;
    let pairs = 0;
    for (const { now, old } of rows) {
      if (now !== null && old !== null) {
        expect(news[now]).toBe(olds[old]);
        pairs++;
      }
    }
    const most = [...new Set(news)].reduce((sum, key) => sum + Math.min(count(news, key), count(olds, key)), 0);
    expect(pairs).toBe(most);
  });
});
