// Queries to a report file: converts a route and its parameters to the key of an answer that the
// page holds.
import { DecodeError } from './decode';
import {
  functionOf,
  narrowFolded,
  narrowFunctions,
  narrowHistogram,
  narrowLeaks,
  narrowSeries,
  narrowSummary,
  narrowTree,
  NotInReport,
  sourceOf,
  type Params,
} from './report-answers';

/** The source of answers: ReportFile, or a table of a test. */
export interface AnswerSource {
  readonly has: (key: string) => boolean;
  readonly get: (key: string) => Promise<unknown>;
}

interface Kept {
  /** The keys of the needed answers, without the scope. */
  readonly keys: (params: Params) => readonly string[];
  readonly answer: (raw: readonly unknown[], params: Params) => unknown;
}

const FOLDED = 'hide_wrappers=1';
const FROM = 'open the recording with `cairn analyze`, or make a report of that alone';

function whole(route: string): Kept {
  return { keys: () => [`${route}?`], answer: ([raw]) => raw };
}

function narrowed(keys: Kept['keys'], narrow: (raw: unknown, params: Params) => unknown): Kept {
  return { keys, answer: ([raw], params) => narrow(raw, params) };
}

function oneOf(params: Params, name: string, otherwise: string): string {
  const value = params[name] ?? '';
  return `${name}=${value === '' ? otherwise : value}`;
}

function treeKey(params: Params): string {
  return `tree?${oneOf(params, 'direction', 'top_down')}${params['collapse'] === '1' ? '&collapse=1' : ''}`;
}

function isFolded(params: Params): boolean {
  return params['hide_wrappers'] === '1';
}

const KEPT: Readonly<Record<string, Kept>> = {
  meta: whole('meta'),
  health: whole('health'),
  summary: narrowed(() => ['summary?'], narrowSummary),
  functions: narrowed((params) => [isFolded(params) ? `functions?${FOLDED}` : 'functions?'], narrowFunctions),
  function: {
    keys: (params) => [...(isFolded(params) ? [`functions?${FOLDED}`, `call_graph?${FOLDED}`] : []), 'functions?', 'call_graph?'],
    answer: functionOf,
  },
  source: narrowed(() => ['call_graph?'], sourceOf),
  tree: {
    keys: (params) => (isFolded(params) ? [`${treeKey(params)}&${FOLDED}`, treeKey(params)] : [treeKey(params)]),
    answer: ([tree, all], params) => (isFolded(params) ? narrowFolded(tree, all, params) : narrowTree(tree, params)),
  },
  series: narrowed((params) => [`series?${oneOf(params, 'value', 'live_bytes')}&${oneOf(params, 'by', 'stack')}`], narrowSeries),
  sizes: narrowed((params) => [`sizes?${oneOf(params, 'rank', 'blocks')}`], narrowHistogram),
  lifetimes: narrowed((params) => [`lifetimes?${oneOf(params, 'rank', 'blocks')}`], narrowHistogram),
  size_lifetime: whole('size_lifetime'),
  leaks: narrowed((params) => [`leaks?${oneOf(params, 'by', 'call_site')}`], narrowLeaks),
  rss: whole('rss'),
  adhoc: whole('adhoc'),
  processes: whole('processes'),
  threads: whole('threads'),
  modules: whole('modules'),
  files: whole('files'),
};

/** Parameters that only a server accepts, with their displayed names. */
const REFUSED: Readonly<Record<string, string>> = {
  function: 'a filter by function',
  function_regex: 'a filter by function',
  file: 'a filter by file',
  file_regex: 'a filter by file',
  module: 'a filter by module',
  module_regex: 'a filter by module',
  focus: 'a focus',
  ignore: 'ignored frames',
  show_from: 'a frame to show from',
  from_ms: 'a time range',
  to_ms: 'a moment or time range',
  classes: 'a time range',
  size_min_bytes: 'a range of sizes',
  size_max_bytes: 'a range of sizes',
  lifetime_min_ms: 'a range of lifetimes',
  lifetime_max_ms: 'a range of lifetimes',
  moment_ms: 'the mappings of a moment',
  diff: 'a comparison',
  recording: 'a second recording',
  search_regex: 'a search by regular expression',
};

function given(params: Params, name: string): boolean {
  return (params[name] ?? '') !== '';
}

/** The suffix of keys for one process or thread. */
function scopeOf(params: Params): string {
  const names = ['process', 'thread'].filter((name) => given(params, name));
  if (names.length > 1) {
    throw new NotInReport(`a report holds a process or a thread by itself, not both; ${FROM}`);
  }
  return names.map((name) => `&${name}=${params[name] ?? ''}`).join('');
}

/** The answer that a server would give. Throws NotInReport. */
export async function answerFrom(source: AnswerSource, route: string, params: Params): Promise<unknown> {
  const refused = Object.keys(REFUSED).find((name) => given(params, name));
  if (refused !== undefined) {
    throw new NotInReport(`a report file holds no answer for ${REFUSED[refused] ?? ''}; ${FROM}`);
  }
  const kept = KEPT[route];
  if (kept === undefined) {
    throw new NotInReport('this is not in a report file; open the recording with `cairn analyze`');
  }
  const scope = scopeOf(params);
  const keys = kept.keys(params).map((key) => `${key}${key === 'meta?' || key === 'health?' ? '' : scope}`);
  if (!keys.every((key) => source.has(key))) {
    throw new NotInReport(
      scope === ''
        ? 'the recording has nothing of this kind, or the report leaves it out'
        : `this report holds no numbers for ${scope.slice(1).replace('=', ' ')} by itself; ${FROM}`,
    );
  }
  const raw = await Promise.all(keys.map((key) => source.get(key)));
  return kept.answer(raw, params);
}

/** The sentence for a failure; null for a bug of the viewer. */
export function problemOf(error: unknown): string | null {
  if (error instanceof NotInReport || error instanceof DecodeError) {
    return error.message;
  }
  return null;
}
