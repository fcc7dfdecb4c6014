// Ticks of an axis from 0 to `highest`: at most `most` multiples of a round step. Pure.

/** What counts as round: powers of two for bytes, whole seconds and minutes for times. */
export type TickKind = 'decimal' | 'binary' | 'time';

const DECIMAL = [1, 2, 5] as const;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const SMALLEST_POWER_MS = -3;
const LARGEST_POWER_DAYS = 5;

function decimalSteps(firstPower: number, lastPower: number): readonly number[] {
  return Array.from({ length: lastPower - firstPower + 1 }, (_, i) => 10 ** (firstPower + i)).flatMap((power) => DECIMAL.map((factor) => factor * power));
}

/** Steps of a time axis in milliseconds, rising: each divides the next larger unit. */
export const TIME_STEPS_MS: readonly number[] = [
  ...decimalSteps(SMALLEST_POWER_MS, 2),
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...decimalSteps(0, LARGEST_POWER_DAYS).map((days) => days * DAY_MS),
];

/** The smallest round step that needs at most `most` ticks beside 0. */
export function tickStep(highest: number, most: number, kind: TickKind): number {
  const least = Math.max(highest / Math.max(most, 1), Number.MIN_VALUE);
  if (kind === 'binary') {
    return 2 ** Math.ceil(Math.log2(least));
  }
  const timeStep = kind === 'time' ? TIME_STEPS_MS.find((step) => step >= least) : undefined;
  if (timeStep !== undefined) {
    return timeStep;
  }
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of DECIMAL) {
    if (factor * power >= least) {
      return factor * power;
    }
  }
  return 10 * power;
}

/** Powers between two ticks of a logarithmic axis. */
const LOG_STEPS = [1, 2, 5, 10, 20, 50] as const;

/** Ticks of a logarithmic axis: 0 and at most `most` powers of 10, or for bytes of 2, up to `highest`. */
export function logTicks(highest: number, most: number, kind: 'decimal' | 'binary'): readonly number[] {
  if (!(highest >= 1)) {
    return [0];
  }
  const powers = Math.floor(kind === 'binary' ? Math.log2(highest) : Math.log10(highest)) + 1;
  const step = LOG_STEPS.find((one) => one * most >= powers) ?? powers;
  const base = kind === 'binary' ? 2 : 10;
  return [0, ...Array.from({ length: Math.ceil(powers / step) }, (_, i) => base ** (i * step))];
}

/** 0 and every multiple of the step up to `highest`. */
export function ticks(highest: number, most: number, kind: TickKind): readonly number[] {
  if (!(highest > 0)) {
    return [0];
  }
  const step = tickStep(highest, most, kind);
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, i) => i * step);
}
