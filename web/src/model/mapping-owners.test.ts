// Mappings are added up by their owner, and nothing is lost.
import { expect, it } from 'vitest';
import { ownersOf } from './mapping-owners';

const TABLE = {
  count: 6,
  path: ['', '/usr/lib/libc.so.6', '', '[heap]', '/usr/lib/libc.so.6', ''],
  kind: ['mapped', 'files', 'mapped', 'live', 'files', 'live'],
  areas: [1, 2, 3, 1, 1, 1],
  rss_bytes: [10, 5, 30, 8, 6, 4],
  virtual_bytes: [20, 5, 30, 8, 6, 4],
  swap_bytes: [0, 0, 1, 0, 0, 0],
  location: [7, null, 7, null, null, null],
};

it('adds up the areas of a call site, of a file, and of a kind', () => {
  expect(ownersOf(TABLE)).toEqual([
    { location: 7, path: '', kind: 'mapped', areas: 4, rss: 40, virtual: 50, swap: 1 },
    { location: null, path: '', kind: 'live', areas: 2, rss: 12, virtual: 12, swap: 0 },
    { location: null, path: '/usr/lib/libc.so.6', kind: 'files', areas: 3, rss: 11, virtual: 11, swap: 0 },
  ]);
});

it('leaves out what has no memory', () => {
  expect(ownersOf({ ...TABLE, count: 1, rss_bytes: [0], virtual_bytes: [0], swap_bytes: [0] })).toEqual([]);
  const [, gone] = ownersOf({ ...TABLE, count: 2, rss_bytes: [10, 0], virtual_bytes: [20, 0] });
  expect(gone).toBeUndefined();
  expect(ownersOf({ ...TABLE, rss_bytes: [10, 5, 30, 8, 0, 4], virtual_bytes: [20, 5, 30, 8, 0, 4] })[2]?.areas).toBe(2);
});
