// The meaning of typed ranges of sizes and lifetimes.
import { describe, expect, it } from 'vitest';
import { formatBytes, formatMs } from '../base/format';
import { LIFETIME_RANGE, parseRange, parseTime, rangeInForce, rangeText, SIZE_RANGE, timeText } from './block-range';

describe('a range of sizes', () => {
  it.each([
    ['64..4096', '64', '4096'],
    ['1MiB..', '1048576', ''],
    ['..1KiB', '', '1024'],
    ['4096', '4096', '4096'],
    [' 1.5k..2KB ', '1536', '2000'],
    ['0..0', '0', '0'],
  ])('%j is %j to %j', (text, min, max) => expect(parseRange(text, SIZE_RANGE)).toEqual({ min, max }));

  it.each(['', '..', '5..4', '-1', '1..2..3', 'x', '1 k', '0x10', '1e3', '1toString', 'constructor', '9999999TiB', '1..y'])(
    '%j is none',
    (text) => expect(parseRange(text, SIZE_RANGE)).toBeNull(),
  );
});

it('a range of lifetimes counts in seconds unless it says otherwise', () => {
  expect(parseRange('1..', LIFETIME_RANGE)).toEqual({ min: '1000', max: '' });
  expect(parseRange('..1ms', LIFETIME_RANGE)).toEqual({ min: '', max: '1' });
  expect(parseRange('10ms..2min', LIFETIME_RANGE)).toEqual({ min: '10', max: '120000' });
  expect(parseRange('1KiB', LIFETIME_RANGE)).toBeNull();
});

it('is told in words', () => {
  expect(rangeText({ min: '64', max: '4096' }, formatBytes)).toBe('64 B to 4.00 KiB');
  expect(rangeText({ min: '1048576', max: '' }, formatBytes)).toBe('1.00 MiB or more');
  expect(rangeText({ min: '', max: '1' }, formatMs)).toBe('1.00 ms or less');
  expect(rangeText({ min: '64', max: '64' }, formatBytes)).toBe('64 B');
});

it('is in force as the recording applies it, with an open end where it was open', () => {
  expect(rangeInForce({ min: '', max: '64' }, { min: 0, max: 79 })).toEqual({ min: '', max: '79' });
  expect(rangeInForce({ min: '65', max: '' }, { min: 64, max: 2 ** 64 })).toEqual({ min: '64', max: '' });
  expect(rangeInForce({ min: '100', max: '200' }, null)).toEqual({ min: '100', max: '200' });
});

it.each([
  [0, '0ms'],
  [48, '48ms'],
  [1000, '1s'],
  [2436, '2.436s'],
  [90_000, '90s'],
  [5_400_000, '90m'],
  [10_800_000, '3h'],
])('a time of %d ms is typed as %s', (ms, text) => {
  expect(timeText(ms)).toBe(text);
  expect(parseTime(text)).toBe(String(ms));
});

it('a time may be none, and may be none of these', () => expect(['', ' 1.5 ', '1.5m', '2x', '-1'].map(parseTime)).toEqual(['', '1500', '90000', null, null]));
