// A copied link shows the same view; its content is not trusted.
import { describe, expect, it } from 'vitest';
import { FIELDS, filterParams, formatAddress, isFiltered, isMoment, parseAddress, stackParams, START, VIEWS, wholeRunParams } from './address';

const AWKWARD = ['a b', 'x&y=z', '#/flame?', '100%', 'ünï', '<script>', 'operator()(int, char const*)', '+', '\u2028'];

describe('an address', () => {
  it('of the start is short', () => expect(formatAddress(START)).toBe('#/summary'));

  it.each(VIEWS)('gives back view %s', (view) => expect(parseAddress(formatAddress({ ...START, view })).view).toBe(view));

  it.each(FIELDS)('gives back %s, whatever it holds', (field) => {
    for (const text of AWKWARD) {
      const address = { ...START, [field]: text };
      expect(parseAddress(formatAddress(address))).toEqual(address);
    }
  });

  it('of an older version leads to the view by its new name', () => {
    expect(formatAddress(parseAddress('#/ledger?process=7&moment=250&ledger=samples'))).toBe('#/rss?process=7&rss_by=samples&moment=250');
  });

  it.each(['', '#', '#/', '#/nonsense', '#/nonsense?function=x', 'javascript:alert(1)', '#/summary?unknown=1&__proto__=2'])(
    '%j leads to the summary',
    (fragment) => {
      const address = parseAddress(fragment);
      expect(address.view).toBe('summary');
      expect(Object.keys(address).sort()).toEqual(Object.keys(START).sort());
    },
  );
});

describe('the filter', () => {
  it('has the time range only where it may', () => {
    const address = { ...START, function: 'f', from_ms: '5', to_ms: '9', classes: 'in_in' };
    expect(filterParams(address)).toMatchObject({ function: 'f', from_ms: '5', to_ms: '9', classes: 'in_in' });
    expect(Object.keys(wholeRunParams(address))).not.toContain('from_ms');
    expect(isFiltered(address)).toBe(true);
    expect(isFiltered(START)).toBe(false);
  });

  it('has sizes and lifetimes only where they may be', () => {
    const address = { ...START, function: 'f', size_min_bytes: '64', lifetime_max_ms: '9' };
    expect(wholeRunParams(address)).toMatchObject({ function: 'f', size_min_bytes: '64', lifetime_max_ms: '9' });
    expect(stackParams(address)).toMatchObject({ function: 'f' });
    expect(Object.keys(stackParams(address)).filter((key) => /size|lifetime|_ms$/.test(key))).toEqual([]);
    expect([isFiltered(address), isFiltered(START)]).toEqual([true, false]);
  });

  it('is a moment if it has an end but no beginning', () => {
    expect(isMoment({ ...START, to_ms: '9' })).toBe(true);
    expect(isMoment({ ...START, from_ms: '1', to_ms: '9' })).toBe(false);
    expect(isMoment(START)).toBe(false);
  });
});
