// Histograms of two recordings on one axis. Bucket numbers mean the same in every recording. Pure.

export interface Buckets {
  readonly bucket: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly blocks: readonly number[];
  readonly bytes: readonly number[];
}

export interface Bar {
  readonly bucket: number;
  readonly low: number;
  readonly high: number;
  /** Position in each recording's columns; null if that recording has no such bucket. */
  readonly now: number | null;
  readonly old: number | null;
}

/** The bars from the lowest to the highest bucket of both; `old` is null without a comparison. */
export function barsOf(now: Buckets, old: Buckets | null): readonly Bar[] {
  const bars = new Map<number, Bar>();
  now.bucket.forEach((bucket, row) => bars.set(bucket, { bucket, low: now.low[row] ?? 0, high: now.high[row] ?? 0, now: row, old: null }));
  old?.bucket.forEach((bucket, row) => {
    const known = bars.get(bucket);
    bars.set(bucket, known === undefined ? { bucket, low: old.low[row] ?? 0, high: old.high[row] ?? 0, now: null, old: row } : { ...known, old: row });
  });
  return [...bars.values()].sort((a, b) => a.bucket - b.bucket);
}
