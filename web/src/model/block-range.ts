// Ranges of sizes and lifetimes as typed, in the form of the command line (--size, --lifetime):
// "64..4096", "1MiB..", "..1ms", or one value. Pure.

export interface BlockRange {
  /** Whole bytes or milliseconds, both ends included; '' for an open end. */
  readonly min: string;
  readonly max: string;
}

export interface RangeKind {
  readonly units: Readonly<Record<string, number>>;
  readonly example: string;
}

const KIB = 1024;

export const SIZE_RANGE: RangeKind = {
  units: {
    '': 1, B: 1, k: KIB, K: KIB, KiB: KIB, kB: 1e3, KB: 1e3, M: KIB ** 2, MiB: KIB ** 2, MB: 1e6,
    G: KIB ** 3, GiB: KIB ** 3, GB: 1e9, T: KIB ** 4, TiB: KIB ** 4,
  },
  example: '64..4096, 1MiB.. or ..1KiB',
};

/** Without a unit: seconds. */
export const LIFETIME_RANGE: RangeKind = {
  units: { '': 1e3, ms: 1, s: 1e3, m: 60e3, min: 60e3, h: 3600e3 },
  example: '10ms..2s, 1m.. or ..1ms',
};

/** The value, or null if `text` is invalid. */
function parseValue(text: string, kind: RangeKind): number | null {
  const match = /^(\d+(?:\.\d*)?)([A-Za-z]*)$/.exec(text);
  const factor = match === null || !Object.hasOwn(kind.units, match[2] ?? '') ? undefined : kind.units[match[2] ?? ''];
  const value = factor === undefined ? NaN : Math.floor(Number(match?.[1]) * factor + 0.5);
  return Number.isSafeInteger(value) ? value : null;
}

export const TIME_EXAMPLE = '90s or 1.5m';

/** A time of the run in milliseconds, in seconds unless it says otherwise; '' for none, null if invalid. */
export function parseTime(text: string): string | null {
  const trimmed = text.trim();
  const value = trimmed === '' ? '' : parseValue(trimmed, LIFETIME_RANGE);
  return value === null ? null : String(value);
}

/** The exact time as `parseTime` reads it, in its largest unit: "48ms", "2.436s", "90m", "3h". */
export function timeText(ms: number): string {
  const unit = (['h', 'm', 's'] as const).find((one) => ms > 0 && ms % (LIFETIME_RANGE.units[one] ?? 1) === 0);
  if (unit !== undefined) {
    return `${ms / (LIFETIME_RANGE.units[unit] ?? 1)}${unit}`;
  }
  return ms < 1000 ? `${ms}ms` : `${ms / 1000}s`;
}

/** Null if `text` is invalid. */
export function parseRange(text: string, kind: RangeKind): BlockRange | null {
  const [low = '', high, ...more] = text.trim().split('..');
  const ends = high === undefined ? [low, low] : [low, high];
  if (more.length > 0 || ends.every((end) => end === '')) {
    return null;
  }
  const values = ends.map((end) => (end === '' ? '' : parseValue(end, kind)));
  const [min, max] = values;
  if (min === null || max === null || min === undefined || max === undefined) {
    return null;
  }
  return min !== '' && max !== '' && min > max ? null : { min: String(min), max: String(max) };
}

/**
 * The range that a recording applies for the range that was asked for: `applied`, which is rounded
 * outwards to the steps of sizes, lifetimes or times; the asked one where that is not known.
 */
export function rangeInForce(asked: BlockRange, applied: { readonly min: number; readonly max: number } | null): BlockRange {
  return applied === null
    ? asked
    : { min: asked.min === '' ? '' : String(applied.min), max: asked.max === '' ? '' : String(applied.max) };
}

/** "64 B to 4.00 KiB", "1.00 MiB or more", "1.00 ms or less". */
export function rangeText(range: BlockRange, format: (value: number) => string): string {
  if (range.min === range.max) {
    return format(Number(range.min));
  }
  if (range.max === '') {
    return `${format(Number(range.min))} or more`;
  }
  return range.min === '' ? `${format(Number(range.max))} or less` : `${format(Number(range.min))} to ${format(Number(range.max))}`;
}
