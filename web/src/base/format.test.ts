// The expected texts are those of src/host/text/format_test.c: numbers are formatted the same
// everywhere.
import { describe, expect, it } from 'vitest';
import { formatBytes, formatChange, formatCount, formatCountOf, formatCountShort, formatMs, formatPercent, formatPercentChange } from './format';

describe('formatBytes', () => {
  it.each([
    [0, '0 B'],
    [812, '812 B'],
    [1023, '1023 B'],
    [1024, '1.00 KiB'],
    [10239, '10.0 KiB'],
    [65536, '64.0 KiB'],
    [1048524, '1.00 MiB'],
    [1310720, '1.25 MiB'],
    [1023 * 1048576, '1023 MiB'],
    [1024 ** 3, '1.00 GiB'],
    [5.5 * 1024 ** 4, '5.50 TiB'],
  ])('%d reads %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));
});

describe('formatCount', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [1000, '1,000'],
    [1234567, '1,234,567'],
  ])('%d reads %s', (count, text) => expect(formatCount(count)).toBe(text));

  it.each([
    [9999, '9,999'],
    [19000, '19k'],
    [1234567, '1.23M'],
  ])('%d is shortly %s', (count, text) => expect(formatCountShort(count)).toBe(text));
});

describe('formatMs', () => {
  it.each([
    [0, '0 ms'],
    [45, '45.0 ms'],
    [999, '999 ms'],
    [1234, '1.23 s'],
    [59900, '59.9 s'],
    [245000, '4 min 05 s'],
    [7380000, '2 h 03 min'],
    [86400000 * 3 + 4 * 3600000, '3 d 04 h'],
  ])('%d reads %s', (ms, text) => expect(formatMs(ms)).toBe(text));
});

describe('formatPercent', () => {
  it.each([
    [0, 0, '-'],
    [0, 5, '0%'],
    [5, 5, '100%'],
    [1, 100000, '<0.1%'],
    [99999, 100000, '>99.9%'],
    [123, 1000, '12.3%'],
    [3, 2, '150.0%'],
  ])('%d of %d reads %s', (part, whole, text) => expect(formatPercent(part, whole)).toBe(text));
});

describe('formatChange', () => {
  it.each([
    [1310720, '+1.25 MiB'],
    [-812, '-812 B'],
    [0, '0 B'],
  ])('%d reads %s', (change, text) => expect(formatChange(change, formatBytes)).toBe(text));
});

it('an unknown figure is a dash, not 0', () => {
  const unknown = Number.NaN;
  expect([formatBytes, formatCount, formatCountShort, formatMs].map((format) => format(unknown))).toEqual(['–', '–', '–', '–']);
  expect(formatCountOf(unknown, 'block')).toBe('– blocks');
  expect([formatPercent(unknown, 5), formatPercent(5, unknown), formatChange(unknown, formatBytes)]).toEqual(['–', '–', '–']);
  expect([formatPercentChange(unknown, 5), formatPercentChange(5, unknown), formatPercentChange(unknown, 0)]).toEqual(['–', '–', '–']);
});
