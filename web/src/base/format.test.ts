// Numbers are formatted the same everywhere: format-cases.txt has the cases that the command line's test
// (src/host/text/format_test.c) reads, too.
import { describe, expect, it } from 'vitest';
import cases from './format-cases.txt?raw';
import {
  formatByteRate, formatBytes, formatChange, formatCount, formatCountOf, formatCountShort, formatMs, formatPercent, formatPercentChange, formatPercentError, formatRate, formatRatio,
} from './format';

const FORMATS: Readonly<Record<string, (a: number, b: number) => string>> = {
  bytes: formatBytes,
  count: formatCount,
  ms: formatMs,
  percent: formatPercent,
  percent_change: formatPercentChange,
  percent_error: formatPercentError,
  rate: formatRate,
  byte_rate: formatByteRate,
};

const LINES = cases.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split('\t'));

describe('numbers', () => {
  it.each(LINES)('%s of %s is %s', (name = '', values = '', text) => {
    const [a = NaN, b = NaN] = values.split(' ').map(Number);
    expect(FORMATS[name]?.(a, b) || '(nothing)').toBe(text);
  });
  it('have a case for each format', () => expect(new Set(LINES.map(([name]) => name))).toEqual(new Set(Object.keys(FORMATS))));
});

describe('formatCountShort', () => {
  it.each([
    [9999, '9,999'],
    [19000, '19k'],
    [1234567, '1.23M'],
  ])('%d is shortly %s', (count, text) => expect(formatCountShort(count)).toBe(text));
});

it('no time is 0 ms', () => expect(formatMs(0)).toBe('0 ms'));

describe('formatChange', () => {
  it.each([
    [1310720, '+1.25 MiB'],
    [-812, '-812 B'],
    [0, '0 B'],
  ])('%d reads %s', (change, text) => expect(formatChange(change, formatBytes)).toBe(text));
});

describe('formatRatio', () => {
  it.each([
    [5, 5, 'same'],
    [5, 0, 'from 0'],
    [0, 0, 'same'],
    [3, 4, '-25.0%'],
  ])('%d after %d is %s', (now, old, text) => expect(formatRatio(now, old)).toBe(text));
});

it('an unknown figure is a dash, not 0', () => {
  const unknown = Number.NaN;
  expect([formatBytes, formatCount, formatCountShort, formatMs].map((format) => format(unknown))).toEqual(['–', '–', '–', '–']);
  expect(formatCountOf(unknown, 'block')).toBe('– blocks');
  expect([formatPercent(unknown, 5), formatPercent(5, unknown), formatChange(unknown, formatBytes)]).toEqual(['–', '–', '–']);
  expect([formatRatio(unknown, 5), formatRatio(5, unknown), formatRatio(unknown, 0)]).toEqual(['–', '–', '–']);
  expect([formatRate(unknown), formatByteRate(unknown), formatPercentError(unknown, 5)]).toEqual(['–', '–', '']);
});
