// What the views first ask the server, as functions of the address: the views use them, and so does the prefetch,
// whose requests must be the same ones.
import { ALL_COSTS, columnCosts, TABLE_COSTS } from '../model/cost';
import { chartKind } from '../model/over-time';
import { filterParams, hideWrappers, shapeParams, stackParams, wholeRunParams, type Address, type ViewId } from './address';

export type Params = Readonly<Record<string, string>>;

export interface Question {
  readonly route: string;
  readonly params: Params;
}

export const FLAME_LIMIT = '200000';

function sortBy(address: Address): string {
  return address.diff === '1' ? address.sort_by : '';
}

export function treeParams(address: Address, direction: 'bottom_up' | 'top_down'): Params {
  return {
    ...filterParams(address),
    direction,
    ...shapeParams(address),
    sort: address.cost,
    costs: columnCosts(address.cost, address.diff === '1').join(','),
    diff: address.diff,
    sort_by: sortBy(address),
  };
}

/** The first level of a tree, or the children of a node. */
export function levelParams(tree: Params, root: string): Params {
  return { ...tree, root, depth: '1', limit: '0' };
}

export function functionsParams(address: Address): Params {
  return {
    ...filterParams(address),
    costs: TABLE_COSTS.join(','),
    sort: address.cost,
    by_self: address.by_self,
    hide_wrappers: hideWrappers(address),
    diff: address.diff,
    sort_by: sortBy(address),
  };
}

export function flameParams(address: Address): Params {
  return {
    ...filterParams(address),
    costs: ALL_COSTS.join(','),
    sort: address.cost,
    direction: address.direction,
    ...shapeParams(address),
    min_share: address.min_share,
    limit: FLAME_LIMIT,
    [address.search_regex === '1' ? 'search_regex' : 'search']: address.search,
    diff: address.diff,
  };
}

export function chartParams(address: Address): Params {
  return { ...stackParams(address), value: chartKind(address.chart).asked, top: address.top, by: address.by };
}

export function histogramParams(address: Address, rank: string): Params {
  return { ...wholeRunParams(address), top: address.top, rank };
}

export function leaksParams(address: Address): Params {
  return { ...wholeRunParams(address), by: address.leaks_by, growth: address.growth, limit: '1000' };
}

export function groupParams(address: Address): Params {
  return { ...filterParams(address), costs: TABLE_COSTS.join(',') };
}

/** The costs of the bars of processes and threads. */
export function livesParams(address: Address): Params {
  return { ...filterParams(address), costs: 'peak_bytes' };
}

export function filesParams(address: Address): Params {
  return { ...filterParams(address), costs: address.cost, sort: address.cost };
}

export function summaryParams(address: Address): Params {
  return { ...filterParams(address), diff: address.diff };
}

export function rssParams(address: Address): Params {
  return { process: address.process, moment_ms: address.moment };
}

const QUESTIONS: Readonly<Record<ViewId, (address: Address) => readonly Question[]>> = {
  summary: (address) => [{ route: 'summary', params: summaryParams(address) }],
  peak: () => [{ route: 'summary', params: {} }],
  flame: (address) => [{ route: 'tree', params: flameParams(address) }],
  'bottom-up': (address) => [{ route: 'tree', params: levelParams(treeParams(address, 'bottom_up'), '') }],
  'top-down': (address) => [{ route: 'tree', params: levelParams(treeParams(address, 'top_down'), '') }],
  functions: (address) => [{ route: 'functions', params: functionsParams(address) }],
  charts: (address) => [{ route: 'series', params: chartParams(address) }],
  sizes: (address) => [{ route: 'sizes', params: histogramParams(address, address.rank) }],
  leaks: (address) => [{ route: 'leaks', params: leaksParams(address) }],
  threads: (address) => [
    { route: 'processes', params: livesParams(address) },
    { route: 'threads', params: livesParams(address) },
    ...['processes', 'threads', 'modules'].map((route) => ({ route, params: groupParams(address) })),
  ],
  rss: (address) => [{ route: 'rss', params: rssParams(address) }],
  source: (address) => [{ route: 'files', params: filesParams(address) }],
};

/** What each of the views would ask first at this address, but the view that is open. */
export function questionsElsewhere(address: Address, views: readonly ViewId[]): readonly Question[] {
  return views.filter((view) => view !== address.view).flatMap((view) => QUESTIONS[view](address));
}
