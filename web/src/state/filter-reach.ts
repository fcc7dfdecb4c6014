// The parts of the filter that a view cannot apply, and the reason, which the view shows. Pure.
import { BLOCK_FIELDS, comparesRanges, TIME_FIELDS, type Address, type FilterField, type ViewId } from './address';

interface Group {
  readonly name: string;
  readonly fields: readonly FilterField[];
}

const TIME: Group = { name: 'the time range', fields: TIME_FIELDS };
const BLOCKS: Group = { name: 'sizes and lifetimes', fields: BLOCK_FIELDS };
const CODE: Group = { name: 'functions, files and modules', fields: ['function', 'function_regex', 'file', 'file_regex', 'module', 'module_regex', 'focus', 'ignore', 'show_from'] };
const THREAD: Group = { name: 'the thread', fields: ['thread'] };
const PROCESS: Group = { name: 'the process', fields: ['process'] };
const GROUPS: readonly Group[] = [CODE, PROCESS, THREAD, TIME, BLOCKS];

interface Limit {
  readonly ignores: readonly Group[];
  readonly why: string;
}

/** Views without an entry apply the whole filter. */
const LIMITS: Readonly<Partial<Record<ViewId, Limit>>> = {
  charts: { ignores: [TIME, BLOCKS], why: 'the chart shows the whole run with the range marked, and what was live is not told apart by size or lifetime' },
  peak: { ignores: GROUPS, why: 'the rise to the peak is that of the whole recording' },
  sizes: { ignores: [TIME], why: 'sizes and lifetimes are those of the whole run' },
  leaks: { ignores: [TIME], why: 'leaks are always those at the end; for another moment see Bottom-up, column Live then' },
  rss: { ignores: [CODE, THREAD, TIME, BLOCKS], why: 'the resident size is known by process only' },
};

function isSet(group: Group, address: Address): boolean {
  return group.fields.some((field) => address[field] !== '');
}

/** One sentence on the parts of the filter that the view ignores, or "". */
export function notApplied(address: Address): string {
  const limit = LIMITS[address.view];
  const isApplied = (group: Group): boolean => group === TIME && address.view === 'leaks' && comparesRanges(address);
  const names = limit?.ignores.filter((group) => isSet(group, address) && !isApplied(group)).map((group) => group.name) ?? [];
  return limit === undefined || names.length === 0 ? '' : `Not applied here: ${names.join(', ')} (${limit.why}).`;
}

/** Whether a field other than `kept` is filtered. */
export function isFilteredBeyond(address: Address, kept: readonly FilterField[]): boolean {
  return GROUPS.some((group) => group.fields.some((field) => !kept.includes(field) && address[field] !== ''));
}
