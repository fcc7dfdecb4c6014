// Formats numbers like the command line (src/host/text/format.c): binary units, three significant
// digits. The tests of both read one table of cases, format-cases.txt. Input: non-negative numbers
// unless the name says change; NaN is an unknown figure. Pure.

/** In place of an unknown figure. */
export const UNKNOWN = '–';

const BYTE_UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

/** Rounds a number that is not negative; a half upwards. */
function nearest(value: number): number {
  return Math.floor(value + 0.5);
}

/** value / unit in three significant digits; null if the text would be `limit` or more. */
function quantity(value: number, unit: number, limit: number, name: string): string | null {
  const rounded = (scale: number): number => nearest((value * scale) / unit);
  const hundredths = rounded(100);
  if (hundredths < 1000) {
    return `${(hundredths / 100).toFixed(2)} ${name}`;
  }
  const tenths = rounded(10);
  if (tenths < 1000) {
    return tenths < limit * 10 ? `${(tenths / 10).toFixed(1)} ${name}` : null;
  }
  const whole = rounded(1);
  return whole < limit ? `${whole} ${name}` : null;
}

/** "812 B", "64.0 KiB", "1.25 MiB". */
export function formatBytes(bytes: number): string {
  if (Number.isNaN(bytes)) {
    return UNKNOWN;
  }
  if (bytes < 1024) {
    return `${Math.round(bytes)} B`;
  }
  for (const [index, name] of BYTE_UNITS.entries()) {
    const text = quantity(bytes, 1024 ** (index + 1), 1024, name);
    if (text !== null) {
      return text;
    }
  }
  return `${Math.round(bytes / 1024 ** 6)} EiB`;
}

/** "1,234,567". */
export function formatCount(count: number): string {
  return Number.isNaN(count) ? UNKNOWN : Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "1 block", "1,234 blocks". */
export function formatCountOf(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${Math.round(count) === 1 ? one : many}`;
}

/** "5.69M": for axes, where a count must be short. */
export function formatCountShort(count: number): string {
  if (Number.isNaN(count) || count < 10000) {
    return formatCount(count);
  }
  const units = ['k', 'M', 'G', 'T', 'P'];
  for (const [index, name] of units.entries()) {
    const text = quantity(count, 1000 ** (index + 1), 1000, name);
    if (text !== null) {
      return text.replace(' ', '').replace(/\.0+(?=\D)/, '');
    }
  }
  return formatCount(count);
}

function longDuration(seconds: number): string {
  const two = (n: number): string => n.toString().padStart(2, '0');
  if (seconds < 3600) {
    return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  }
  const minutes = nearest(seconds / 60);
  if (minutes < 1440) {
    return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  }
  const hours = nearest(seconds / 3600);
  return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
}

/** "45.0 ms", "1.23 s", "4 min 05 s", "2 h 03 min". */
export function formatMs(ms: number): string {
  if (ms === 0 || Number.isNaN(ms)) {
    return ms === 0 ? '0 ms' : UNKNOWN;
  }
  if (ms < 1) {
    return quantity(ms * 1000, 1, 1000, 'us') ?? '1.00 ms';
  }
  return (
    quantity(ms, 1, 1000, 'ms') ??
    quantity(ms, 1000, 60, 's') ??
    longDuration(nearest(ms / 1000))
  );
}

/** "12.3%", "<0.1%"; "-" for a share of zero. */
export function formatPercent(part: number, whole: number): string {
  if (Number.isNaN(part) || Number.isNaN(whole)) {
    return UNKNOWN;
  }
  if (whole === 0) {
    return '-';
  }
  if (part === 0 || part === whole) {
    return part === 0 ? '0%' : '100%';
  }
  const permille = nearest((part * 1000) / whole);
  if (permille === 0) {
    return '<0.1%';
  }
  return part < whole && permille === 1000 ? '>99.9%' : `${(permille / 10).toFixed(1)}%`;
}

/** `format` of a change, with its sign: "+1.25 MiB", "-3", "0". */
export function formatChange(change: number, format: (value: number) => string): string {
  const sign = change < 0 ? '-' : change > 0 ? '+' : '';
  return sign + format(Math.abs(change));
}

/** A change as a share of the old value: "+12.3%", "-100.0%", "-0.0%". */
export function formatPercentChange(change: number, old: number): string {
  const sign = change < 0 ? '-' : change > 0 ? '+' : '';
  return `${sign}${(nearest((1000 * Math.abs(change)) / old) / 10).toFixed(1)}%`;
}

/** The change of a figure in words: "+12.3%", "from 0", "same". */
export function formatRatio(now: number, old: number): string {
  if (Number.isNaN(now) || Number.isNaN(old)) {
    return UNKNOWN;
  }
  return now === old ? 'same' : old === 0 ? 'from 0' : formatPercentChange(now - old, old);
}

/** The error of a figure as its share: "±12%", at most "±999%"; nothing if either is 0. */
export function formatPercentError(figure: number, error: number): string {
  return figure > 0 && error > 0 ? `±${Math.min(nearest((100 * error) / figure), 999)}%` : '';
}

/** What happens in a second: "148,933"; "<1" if it rounds to 0. */
export function formatRate(perS: number): string {
  return perS > 0 && nearest(perS) === 0 ? '<1' : formatCount(nearest(perS));
}

/** "1.25 MiB", "<1 B". */
export function formatByteRate(bytesPerS: number): string {
  return bytesPerS > 0 && nearest(bytesPerS) === 0 ? '<1 B' : formatBytes(nearest(bytesPerS));
}
