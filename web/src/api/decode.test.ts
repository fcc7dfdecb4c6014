// Invalid answers are refused, and the message names the place.
import { expect, it } from 'vitest';
import { figure, figures, flag, list, num, nums, object, orNull, record, refs, str } from './decode';

const shape = object({ a: num, b: object({ c: list(str), d: orNull(num) }) });

it('gives back what fits, without what it does not know', () => {
  expect(shape({ a: 1, b: { c: ['x'], d: null }, more: true }, 'top')).toEqual({ a: 1, b: { c: ['x'], d: null } });
  expect(shape({ a: 1, b: { c: [] } }, 'top')).toEqual({ a: 1, b: { c: [], d: null } });
});

it.each([
  [{ a: '1', b: { c: [] } }, 'top.a'],
  [{ a: Number.NaN, b: { c: [] } }, 'top.a'],
  [{ a: 1, b: null }, 'top.b'],
  [{ a: 1, b: { c: ['x', 2] } }, 'top.b.c[1]'],
  [{ a: 1, b: { c: 'x' } }, 'top.b.c'],
  [null, 'top'],
])('%j is refused at %s', (value, path) => expect(() => shape(value, 'top')).toThrow(path));

it('checks columns', () => {
  expect(nums([1, 2], 'p')).toEqual([1, 2]);
  expect(refs([1, null], 'p')).toEqual([1, null]);
  expect(() => nums([1, null], 'p')).toThrow('p');
  expect(() => refs(['1'], 'p')).toThrow('p');
  expect(record(num)({ x: 1 }, 'p')).toEqual({ x: 1 });
  expect(flag(true, 'p')).toBe(1);
  expect(() => flag('yes', 'p')).toThrow('p');
});

it('makes no 0 of an unknown figure', () => {
  expect(figures([1, null, 0], 'p')).toEqual([1, Number.NaN, 0]);
  expect(figures([Number.NaN], 'p')).toEqual([Number.NaN]); // decoded before, in a report file
  expect([figure(null, 'p'), figure(Number.NaN, 'p'), figure(0, 'p')]).toEqual([Number.NaN, Number.NaN, 0]);
  expect(() => figures([1, 'x', null], 'p')).toThrow('p');
  expect(() => figures([1, undefined], 'p')).toThrow('p');
  expect(() => figure(undefined, 'p')).toThrow('p');
});
