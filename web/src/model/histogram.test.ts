// Histograms of two recordings: every bucket of both once, in order, with its position in each.
import { expect, it } from 'vitest';
import { barsOf, type Buckets } from './histogram';

function buckets(numbers: readonly number[]): Buckets {
  return { bucket: numbers, low: numbers.map((n) => n * 10), high: numbers.map((n) => n * 10 + 9), blocks: numbers, bytes: numbers };
}

it('one recording has its own buckets', () => {
  expect(barsOf(buckets([2, 3]), null).map((bar) => [bar.bucket, bar.now, bar.old])).toEqual([[2, 0, null], [3, 1, null]]);
});

it('two recordings share an axis', () => {
  const bars = barsOf(buckets([3, 4, 5]), buckets([1, 2, 3, 4]));
  expect(bars.map((bar) => [bar.bucket, bar.now, bar.old])).toEqual([[1, null, 0], [2, null, 1], [3, 0, 2], [4, 1, 3], [5, 2, null]]);
  expect(bars.map((bar) => bar.low)).toEqual([10, 20, 30, 40, 50]);
});
