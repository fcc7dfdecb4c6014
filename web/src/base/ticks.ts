// Ticks of an axis from 0 to `highest`: at most `most` multiples of a round step. Pure.

const DECIMAL = [1, 2, 5] as const;

/** The smallest round step that needs at most `most` ticks beside 0. */
export function tickStep(highest: number, most: number, isBinary: boolean): number {
  const least = Math.max(highest / Math.max(most, 1), Number.MIN_VALUE);
  if (isBinary) {
    return 2 ** Math.ceil(Math.log2(least));
  }
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of DECIMAL) {
    if (factor * power >= least) {
      return factor * power;
    }
  }
  return 10 * power;
}

/** 0 and every multiple of the step up to `highest`. */
export function ticks(highest: number, most: number, isBinary: boolean): readonly number[] {
  if (!(highest > 0)) {
    return [0];
  }
  const step = tickStep(highest, most, isBinary);
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, i) => i * step);
}
