// The geometry of the time line: columns of times and values as paths of a drawing, and what is
// there at a time. Pure.

/** A drawing is this wide and high, and is stretched to its place. */
export const STRIP = { width: 1000, height: 100 } as const;
/** Free above the highest value. */
const HEADROOM = 6;

export interface Scale {
  readonly maxMs: number;
  readonly maxValue: number;
}

function x(ms: number, scale: Scale): string {
  return ((ms / scale.maxMs) * STRIP.width).toFixed(1);
}

function y(value: number, scale: Scale): string {
  return (STRIP.height - (value / scale.maxValue) * (STRIP.height - HEADROOM)).toFixed(1);
}

/** The area below the values, each of which holds at its time. */
export function areaPath(timesMs: readonly number[], values: readonly number[], scale: Scale): string {
  const line = timesMs.map((ms, i) => `L${x(ms, scale)} ${y(values[i] ?? 0, scale)}`);
  return `M0 ${STRIP.height}${line.join('')}L${x(timesMs.at(-1) ?? 0, scale)} ${STRIP.height}Z`;
}

/** A line with steps: each value holds until the next, the last until `endMs`. */
export function stepPath(timesMs: readonly number[], values: readonly number[], scale: Scale, endMs = scale.maxMs): string {
  const steps = timesMs.map((ms, i) => `${i === 0 ? 'M' : 'H'}${x(ms, scale)}${i === 0 ? ' ' : 'V'}${y(values[i] ?? 0, scale)}`);
  return steps.length === 0 ? '' : `${steps.join('')}H${x(endMs, scale)}`;
}

/** The position of the last of the rising times that is at most `ms`; -1: all are later. */
export function lastAt(timesMs: readonly number[], ms: number): number {
  let low = 0;
  let high = timesMs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((timesMs[middle] ?? 0) <= ms) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}
