// The costs by key: the title of a column, its meaning and its format. The keys are those of
// docs/format/json.md; an unknown key (of a newer server) is its own title.
import { formatBytes, formatChange, formatCount, formatCountShort, formatPercentError } from '../base/format';

export type CostKey = string;

interface CostText {
  readonly title: string;
  readonly meaning: string;
}

const TEXTS: Readonly<Record<string, CostText>> = {
  peak_bytes: { title: 'Peak', meaning: 'bytes live when the whole heap was largest' },
  peak_blocks: { title: 'Peak blocks', meaning: 'blocks live when the whole heap was largest' },
  allocations: { title: 'Allocations', meaning: 'allocation calls that succeeded' },
  allocated_bytes: { title: 'Allocated', meaning: 'bytes asked for in all, freed or not' },
  frees: { title: 'Frees', meaning: 'blocks from here that were freed' },
  freed_bytes: { title: 'Freed', meaning: 'bytes from here that were freed' },
  temporary: { title: 'Temporary', meaning: 'allocations that their thread freed with its very next heap operation' },
  temporary_bytes: { title: 'Temporary bytes', meaning: 'bytes of the temporary allocations' },
  live_bytes: { title: 'Leaked', meaning: 'bytes still live at the end' },
  live_blocks: { title: 'Leaked blocks', meaning: 'blocks still live at the end' },
  peak_rss_bytes: { title: 'Peak RSS', meaning: 'highest resident size of all processes together' },
  own_peak_bytes: { title: 'Own peak', meaning: 'most that one stack ever held, whenever that was' },
};

/** The columns of the tables, in heaptrack's order. */
export const TABLE_COSTS: readonly CostKey[] = [
  'peak_bytes',
  'live_bytes',
  'allocations',
  'temporary',
  'allocated_bytes',
];

/** The costs of stacks; RSS belongs to whole processes. */
export const ALL_COSTS: readonly CostKey[] = Object.keys(TEXTS).filter((key) => key !== 'peak_rss_bytes');

/**
 * When the blocks are live that the leaked costs count: at the end, at the moment of the filter,
 * while the program runs, now, or when its recording stopped. Only the first ones are leaked.
 */
export type LiveWhen = 'end' | 'then' | 'now' | 'stop';

const LIVE_TEXTS: Readonly<Record<LiveWhen, Readonly<Record<CostKey, CostText>>>> = {
  end: {},
  then: {
    live_bytes: { title: 'Live then', meaning: 'bytes live at that moment' },
    live_blocks: { title: 'Live blocks then', meaning: 'blocks live at that moment' },
  },
  stop: {
    live_bytes: { title: 'Live', meaning: 'bytes live when the recording ended; the program ran on and may still free them' },
    live_blocks: { title: 'Live blocks', meaning: 'blocks live when the recording ended; the program ran on and may still free them' },
  },
  now: {
    live_bytes: { title: 'Live now', meaning: 'bytes live now, and not freed so far' },
    live_blocks: { title: 'Live blocks now', meaning: 'blocks live now, and not freed so far' },
  },
};

function textOf(key: CostKey, when: LiveWhen): CostText | undefined {
  return LIVE_TEXTS[when][key] ?? TEXTS[key];
}

export function costTitle(key: CostKey, when: LiveWhen = 'end'): string {
  return textOf(key, when)?.title ?? key;
}

/** After the title of a column, which has three numbers in a comparison. */
export const OLD_NEW_CHANGE = ': old, new, change';

/** The heading in a narrow table, which has no room for old values. */
export function narrowHeading(heading: string): string {
  return heading.replace(OLD_NEW_CHANGE, ', change').replace(/^Leaked blocks/, 'Blocks');
}

export function costMeaning(key: CostKey, when: LiveWhen = 'end'): string {
  return textOf(key, when)?.meaning ?? key;
}

export function isBytes(key: CostKey): boolean {
  return key.endsWith('_bytes');
}

export function formatCost(key: CostKey, value: number): string {
  return isBytes(key) ? formatBytes(value) : formatCount(value);
}

export function formatCostChange(key: CostKey, change: number): string {
  return formatChange(change, (value) => formatCostBeside(key, value));
}

/** In a cell with other numbers: large counts are short. */
export function formatCostBeside(key: CostKey, value: number): string {
  return !isBytes(key) && value >= 1e8 ? formatCountShort(value) : formatCost(key, value);
}

/** " ±12%", after a figure in a sentence. */
export function errorBeside(value: number, error: number | null | undefined): string {
  const text = formatPercentError(value, error ?? 0);
  return text === '' ? '' : ` ${text}`;
}

/** For tooltips: the rounded figure and the exact one. */
export function formatCostExact(key: CostKey, value: number): string {
  return isBytes(key) && value >= 1024
    ? `${formatBytes(value)} (${formatCount(value)} B)`
    : formatCost(key, value);
}

/** Two standard errors of a change: the recordings are independent. */
export function changeError(error: number | undefined, oldError: number | undefined): number {
  return Math.hypot(error ?? 0, oldError ?? 0);
}


/**
 * The widths of a column with the cost and its share, or with old, new and change; and with the
 * error. In a narrow table, bar and tooltip have the share, and the tooltip the old value.
 */
export function costWidths(key: CostKey, isDiff: boolean, hasErrors = false): { readonly widthPx: number; readonly narrowPx: number } {
  const widthPx = (isBytes(key) ? 122 : 144) + (isDiff ? (isBytes(key) ? 108 : 128) : 0) + (hasErrors ? (isDiff ? 84 : 44) : 0);
  return { widthPx, narrowPx: widthPx - (isDiff ? (isBytes(key) ? 84 : 100) : isBytes(key) ? 38 : 46) };
}

/**
 * Columns of a table: heaptrack's four and the chosen one; fewer in a comparison, where each has
 * three numbers.
 */
export function columnCosts(chosen: CostKey, isDiff: boolean): readonly CostKey[] {
  const usual = isDiff ? ['peak_bytes', 'live_bytes', 'allocations'] : ['peak_bytes', 'live_bytes', 'allocations', 'temporary'];
  return usual.includes(chosen) ? usual : [...usual, chosen];
}
