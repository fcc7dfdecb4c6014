// The state of the page that a copied link must restore, and its form in the address:
// #/flame?cost=live_bytes&function=foo. Every field is text; a field with its default value is
// not written. The address is untrusted: unknown fields are dropped, unknown views become the
// summary.

export const VIEWS = [
  'summary',
  'peak',
  'flame',
  'bottom-up',
  'top-down',
  'functions',
  'charts',
  'sizes',
  'leaks',
  'threads',
  'rss',
  'source',
] as const;
export type ViewId = (typeof VIEWS)[number];

/** The filter of all views, with the names of the API. */
export const FILTER_DEFAULTS = {
  function: '',
  function_regex: '',
  file: '',
  file_regex: '',
  module: '',
  module_regex: '',
  focus: '',
  ignore: '',
  show_from: '',
  process: '',
  thread: '',
  from_ms: '',
  to_ms: '',
  classes: '',
  /** The other time range, if two of one recording are compared. */
  old_from_ms: '',
  old_to_ms: '',
  size_min_bytes: '',
  size_max_bytes: '',
  lifetime_min_ms: '',
  lifetime_max_ms: '',
} as const;

const VIEW_DEFAULTS = {
  /** The sort key of tables and the width of the flame graph. */
  cost: 'peak_bytes',
  direction: 'top_down',
  layout: 'icicle',
  collapse: '1',
  /** '1': wrapper frames are shown; '': folded. */
  wrappers: '',
  /** The paths of unfolded runs of wrapper frames, as the server numbers them, with commas. */
  unfold: '',
  min_share: '0.0005',
  zoom: '',
  search: '',
  /** '1': the search is a regular expression. */
  search_regex: '',
  /** The selected function by name and module: ids are valid within one generation only. */
  fn: '',
  fn_module: '',
  by_self: '',
  chart: 'live_bytes',
  top: '10',
  by: 'call_site',
  /** By 'call_site', 'stack' or 'block'. */
  leaks_by: 'call_site',
  /** Single blocks: 'peak' lists those live at the peak. */
  blocks_at: '',
  /** What a card or a link is about, by function and line: its row is selected, the others step back. */
  subject: '',
  subject_line: '',
  rank: 'blocks',
  histogram: 'sizes',
  /** Histograms: 'log' or 'linear' heights; '': log for lifetimes. */
  scale: '',
  growth: '',
  /** RSS: 'samples' shows it by kind of page instead of the RSS breakdown. */
  rss_by: '',
  /** RSS: the moment of the shown breakdown and mappings, in milliseconds; '': the highest. */
  moment: '',
  /** RSS: 'each' lists each mapping, '' what each owner has. */
  mappings_by: '',
  path: '',
  line: '',
  diff: '',
  /** In a comparison: 'change' sorts by the change, 'larger' by the larger side. */
  sort_by: 'change',
} as const;

const DEFAULTS = { ...FILTER_DEFAULTS, ...VIEW_DEFAULTS };
export type Field = keyof typeof DEFAULTS;
export type FilterField = keyof typeof FILTER_DEFAULTS;
export type Address = { readonly view: ViewId } & Readonly<Record<Field, string>>;

export const FIELDS = Object.keys(DEFAULTS).filter((key): key is Field => key in DEFAULTS);
export const FILTER_FIELDS = Object.keys(FILTER_DEFAULTS).filter(
  (key): key is FilterField => key in FILTER_DEFAULTS,
);

export const START: Address = { view: 'summary', ...DEFAULTS };

/** The names of views and fields in the links of older versions. */
const OLD_NAMES: Readonly<Partial<Record<ViewId | Field, string>>> = { rss: 'ledger', rss_by: 'ledger' };

export function parseAddress(fragment: string): Address {
  const match = /^#?\/?([a-z-]*)(?:\?(.*))?$/s.exec(fragment);
  const view = VIEWS.find((id) => [id, OLD_NAMES[id]].includes(match?.[1] ?? '')) ?? 'summary';
  const given = new URLSearchParams(match?.[2] ?? '');
  const fields: Record<Field, string> = { ...DEFAULTS };
  for (const field of FIELDS) {
    fields[field] = given.get(field) ?? given.get(OLD_NAMES[field] ?? field) ?? fields[field];
  }
  return { view, ...fields };
}

export function formatAddress(address: Address): string {
  const given = new URLSearchParams();
  for (const field of FIELDS) {
    if (address[field] !== DEFAULTS[field]) {
      given.set(field, address[field]);
    }
  }
  const text = given.toString();
  return `#/${address.view}${text === '' ? '' : `?${text}`}`;
}

export const TIME_FIELDS: readonly FilterField[] = ['from_ms', 'to_ms', 'classes', 'old_from_ms', 'old_to_ms'];
export const BLOCK_FIELDS: readonly FilterField[] = ['size_min_bytes', 'size_max_bytes', 'lifetime_min_ms', 'lifetime_max_ms'];

function paramsBut(address: Address, left: readonly FilterField[]): Record<string, string> {
  const isMeant = (field: FilterField): boolean => !left.includes(field) && (address.diff === '1' || !field.startsWith('old_'));
  return Object.fromEntries(FILTER_FIELDS.filter(isMeant).map((field) => [field, address[field]]));
}

/** The parameters of the filter, for any route that has a selection. */
export function filterParams(address: Address): Record<string, string> {
  return paramsBut(address, []);
}

/** The parameters for routes that always cover the whole run: histograms, leaks. */
export function wholeRunParams(address: Address): Record<string, string> {
  return paramsBut(address, TIME_FIELDS);
}

/**
 * The parameters for whole stacks, for charts: ages and sizes of the blocks of a slice are not
 * recorded.
 */
export function stackParams(address: Address): Record<string, string> {
  return paramsBut(address, [...TIME_FIELDS, ...BLOCK_FIELDS]);
}

/** The parameters for the shape of a call tree. */
export function shapeParams(address: Address): Record<string, string> {
  const hide_wrappers = hideWrappers(address);
  return { collapse: address.collapse, hide_wrappers, unfold: hide_wrappers === '1' ? address.unfold : '' };
}

/** The parameter that folds wrapper frames, unless the reader wants to see them. */
export function hideWrappers(address: Address): string {
  return address.wrappers === '1' ? '' : '1';
}

/** Whether two time ranges of the recording are compared. */
export function comparesRanges(address: Address): boolean {
  return address.diff === '1' && address.old_to_ms !== '';
}

/** Whether the recording is compared with another one. */
export function comparesFiles(address: Address): boolean {
  return address.diff === '1' && address.old_to_ms === '';
}

export function isFiltered(address: Address): boolean {
  return FILTER_FIELDS.some((field) => address[field] !== '');
}

/** The heap at a moment: an end without a beginning. */
export function isMoment(address: Address): boolean {
  return address.from_ms === '' && address.to_ms !== '';
}
