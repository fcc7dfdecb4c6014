// Answers of a report file: selects the stored answer for a query and converts it to the answer of
// a server: rows are sorted, truncated and looked up. No displayed figure is summed here, with three
// exceptions: the part of a chart's areas that goes to `rest`, the matches of a search in a
// complete tree, and the nodes of one whose wrapper frames are folded here.
import { code as codeTables } from './answers';
import { foldNodes, pathsOf } from './report-folds';
import { addSizes, errorOf, type Sizes } from './report-errors';
import { figures, list, num, nums, object, orNull, record, refs, str, type Decode, type Decoded } from './decode';

export type Params = Readonly<Record<string, string>>;
type Fields = Readonly<Record<string, unknown>>;
type Table = Fields;

/** A query that the report cannot answer; the message has the reason. */
export class NotInReport extends Error {}

const anything: Decode<unknown> = (value) => value;
const fields: Decode<Fields> = record(anything);
const columns = record(figures);

function fieldsOf(value: unknown): Fields {
  return fields(value, 'report');
}

/**
 * The rows of a table at these positions: every column, and every column of the tables inside it.
 */
export function pickRows(table: Table, rows: readonly number[]): Table {
  const picked: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(table)) {
    if (Array.isArray(value)) {
      const column: readonly unknown[] = value;
      picked[key] = rows.map((row) => column[row]);
    } else {
      picked[key] = typeof value === 'object' && value !== null ? pickRows(fieldsOf(value), rows) : rows.length;
    }
  }
  return picked;
}

function places(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function numberOr(text: string | undefined, otherwise: number): number {
  return text === undefined || text === '' ? otherwise : Number(text);
}

/** Highest first; ties by the lower id, as in the server. */
function sortByCost(rows: number[], costs: readonly number[], ids: readonly number[]): number[] {
  return rows.sort((a, b) => (costs[b] ?? 0) - (costs[a] ?? 0) || (ids[a] ?? 0) - (ids[b] ?? 0));
}

const functionsTable = object({
  functions: object({ count: num, function: refs, self: columns, inclusive: columns, self_errors: orNull(columns) }),
  code: codeTables,
});

export function narrowFunctions(raw: unknown, params: Params): unknown {
  const { functions, code } = functionsTable(raw, 'functions');
  const costs = params['by_self'] === '1' ? functions.self : functions.inclusive;
  const ids = functions.function.map((place) => code.functions.id[place ?? -1] ?? 0);
  const rows = sortByCost(places(functions.count), costs[params['sort'] || 'peak_bytes'] ?? [], ids);
  const limit = numberOr(params['limit'], 1000);
  const whole = fieldsOf(raw);
  return { ...whole, functions: pickRows(fieldsOf(whole['functions']), limit > 0 ? rows.slice(0, limit) : rows) };
}

const treeTable = object({
  complete: anything,
  nodes: object({
    count: num,
    id: nums,
    parent: refs,
    function: refs,
    total: columns,
    inverse_lengths: orNull(nums),
    shortest_length: orNull(nums),
  }),
  /** Null: all costs are exact. */
  variance: orNull(num),
  code: codeTables,
});
type TreeTable = Decoded<typeof treeTable>;

/** The positions of the children of each position. */
function childrenOf(tree: TreeTable): readonly number[][] {
  const children: number[][] = tree.nodes.id.map(() => []);
  tree.nodes.parent.forEach((parent, place) => {
    if (parent !== null) {
      children[parent]?.push(place);
    }
  });
  return children;
}

interface Wish {
  readonly root: number;
  readonly levels: number;
  readonly minimum: number;
  readonly limit: number;
  readonly score: readonly number[];
}

function wishOf(tree: TreeTable, params: Params): Wish {
  const root = tree.nodes.id.indexOf(numberOr(params['root'], 0));
  const score = tree.nodes.total[params['sort'] || 'peak_bytes'];
  if (root < 0 || score === undefined) {
    throw new NotInReport('this part of the tree is not in the report');
  }
  const limit = numberOr(params['limit'], 20000);
  return {
    root,
    score,
    levels: numberOr(params['depth'], 0) || Infinity,
    minimum: Math.ceil(numberOr(params['min_share'], 0) * (score[0] || 0)),
    limit: limit > 0 ? limit : Infinity,
  };
}

/** The positions to show, depth first, siblings highest first. */
function pickNodes(tree: TreeTable, wish: Wish): { readonly rows: readonly number[]; readonly isCut: boolean } {
  const { id } = tree.nodes;
  const children = childrenOf(tree);
  const offered: number[] = [];
  let isCut = false;
  const collect = (place: number, level: number): void => {
    offered.push(place);
    for (const child of level < wish.levels ? (children[place] ?? []) : []) {
      if ((wish.score[child] || 0) >= wish.minimum) {
        collect(child, level + 1);
      } else {
        isCut = true;
      }
    }
  };
  collect(wish.root, 0);
  isCut ||= offered.length > wish.limit;
  // A parent costs at least as much as its child and has the lower id: a node is never taken
  // without its parent.
  const [first = wish.root, ...others] = offered;
  const taken = new Set([first, ...sortByCost(others, wish.score, id).slice(0, Math.max(0, wish.limit - 1))]);
  const rows: number[] = [];
  const walk = (place: number): void => {
    rows.push(place);
    const shown = (children[place] ?? []).filter((child) => taken.has(child));
    sortByCost(shown, wish.score, id).forEach(walk);
  };
  walk(wish.root);
  return { rows, isCut };
}

/**
 * Compare as the server does (src/profile/select/pattern.c): with the displayed name, or with the
 * whole name if the text has brackets.
 */
function findMatches(tree: TreeTable, text: string): readonly boolean[] {
  const wanted = text.toLowerCase();
  const isPlain = !/[ <>()]/.test(text);
  const { functions, modules } = tree.code;
  const verdicts = functions.name.map((whole, place) => {
    const name = isPlain ? (functions.short[place] ?? whole) : whole;
    const module = functions.module[place] ?? null;
    const path = module === null ? '' : (modules.path[module] ?? '');
    return name.toLowerCase().includes(wanted) || path.toLowerCase().includes(wanted);
  });
  return tree.nodes.function.map((place) => place !== null && verdicts[place] === true);
}

interface MatchTotals {
  readonly totals: Readonly<Record<string, number>>;
  /** Null: they are exact. */
  readonly totals_errors: Readonly<Record<string, number>> | null;
}

/** The costs of all stacks with a match, each counted once: the totals of the outermost matches. */
function matchTotals(tree: TreeTable, matched: readonly boolean[]): MatchTotals {
  const inside: boolean[] = [];
  const outermost = places(tree.nodes.count).filter((place) => {
    const parent = tree.nodes.parent[place] ?? null;
    const isBelow = parent !== null && inside[parent] === true;
    inside[place] = isBelow || matched[place] === true;
    return !isBelow && matched[place] === true;
  });
  const totals = Object.entries(tree.nodes.total).map(([cost, values]): [string, number] => [
    cost,
    outermost.reduce((sum, place) => sum + (values[place] ?? 0), 0),
  ]);
  const { variance } = tree;
  const sizes: Sizes = { inverse: 0, shortest: 0 };
  for (const place of places(tree.nodes.count).filter((own) => inside[own] === true)) {
    addSizes(sizes, { inverse: tree.nodes.inverse_lengths?.[place] ?? 0, shortest: tree.nodes.shortest_length?.[place] ?? 0 });
  }
  const errors = totals.map(([cost, sum]): [string, number] => [cost, errorOf(variance ?? 0, cost, sum, sizes)]);
  return { totals: Object.fromEntries(totals), totals_errors: variance === null ? null : Object.fromEntries(errors) };
}

export function narrowTree(raw: unknown, params: Params): unknown {
  const tree = treeTable(raw, 'tree');
  const { rows, isCut } = pickNodes(tree, wishOf(tree, params));
  const whole = fieldsOf(raw);
  const newPlace = new Map(rows.map((row, place) => [row, place]));
  const parent = rows.map((row, place) => (place === 0 ? null : (newPlace.get(tree.nodes.parent[row] ?? -1) ?? null)));
  const nodes: Record<string, unknown> = { ...pickRows(fieldsOf(whole['nodes']), rows), parent };
  const text = params['search'] ?? '';
  let search: unknown = null;
  if (text !== '') {
    const matched = findMatches(tree, text);
    nodes['matched'] = rows.map((row) => (matched[row] === true ? 1 : 0));
    const count = matched.filter((is) => is).length;
    search = tree.complete === true ? { matched_nodes: count, ...matchTotals(tree, matched) } : null;
  }
  return { ...whole, complete: tree.complete === true && !isCut, nodes, search };
}

interface FoldedTree {
  readonly unfold: string;
  readonly tree: unknown;
}

/** By stored tree: how it was folded last. A page asks for it many times in a row. */
const folded = new WeakMap<object, FoldedTree>();

function fold(stored: Fields, all: Fields, params: Params): unknown {
  const unfold = params['unfold'] ?? '';
  if (unfold === '') {
    return { ...stored, nodes: { ...fieldsOf(stored['nodes']), path: pathsOf(stored) } };
  }
  const nodes = foldNodes(all, new Set(unfold.split(',').map(Number)), params['direction'] === 'bottom_up');
  return { ...all, total_nodes: nodes['count'], nodes };
}

/** A tree without wrapper frames. Single runs can only be unfolded if the report has all nodes of both trees. */
export function narrowFolded(storedTree: unknown, all: unknown, params: Params): unknown {
  const stored = fieldsOf(storedTree);
  if (stored['complete'] !== true || fieldsOf(all)['complete'] !== true) {
    const answer = fieldsOf(narrowTree(stored, params));
    return { ...answer, nodes: { ...fieldsOf(answer['nodes']), path: null, unfolded_by: null } };
  }
  const known = folded.get(stored);
  const now = known?.unfold === (params['unfold'] ?? '') ? known : { unfold: params['unfold'] ?? '', tree: fold(stored, fieldsOf(all), params) };
  folded.set(stored, now);
  return narrowTree(now.tree, params);
}

const areas = object({ top: list(fields), rest: anything });
const amounts = object({ values: nums, errors: orNull(nums) });
const restErrors = object({ rest_errors: orNull(nums) });

/** Keep the first `top` areas; the others go to the rest, whose variance is the sum of theirs. */
export function narrowSeries(raw: unknown, params: Params): unknown {
  const { top, rest } = areas(raw, 'series');
  const { rest_errors: known } = restErrors(raw, 'series');
  const count = numberOr(params['top'], 10);
  const sums = [...nums(rest, 'rest')];
  const errors = [...(known ?? [])];
  for (const entry of top.slice(count)) {
    const more = amounts(entry, 'top');
    more.values.forEach((value, place) => (sums[place] = (sums[place] ?? 0) + value));
    more.errors?.forEach((error, place) => (errors[place] = Math.ceil(Math.hypot(errors[place] ?? 0, error))));
  }
  return { ...fieldsOf(raw), top: top.slice(0, count), rest: sums, ...(known === null ? {} : { rest_errors: errors }) };
}

const bars = object({ blocks: nums, bytes: nums });

export function narrowHistogram(raw: unknown, params: Params): unknown {
  const { top, rest } = areas(raw, 'histogram');
  const count = numberOr(params['top'], 10);
  const first = bars(rest, 'rest');
  const blocks = [...first.blocks];
  const bytes = [...first.bytes];
  for (const entry of top.slice(count)) {
    const more = bars(entry, 'top');
    more.blocks.forEach((value, place) => (blocks[place] = (blocks[place] ?? 0) + value));
    more.bytes.forEach((value, place) => (bytes[place] = (bytes[place] ?? 0) + value));
  }
  return { ...fieldsOf(raw), top: top.slice(0, count), rest: { blocks, bytes } };
}

const leakTable = object({ total_count: num, leaks: object({ count: num, growth: list(str) }) });

export function narrowLeaks(raw: unknown, params: Params): unknown {
  const { total_count: total, leaks } = leakTable(raw, 'leaks');
  const growth = params['growth'] ?? '';
  const rows = places(leaks.count).filter((row) => growth === '' || leaks.growth[row] === growth);
  const limit = numberOr(params['limit'], 100);
  const whole = fieldsOf(raw);
  return {
    ...whole,
    total_count: growth === '' ? total : rows.length,
    leaks: pickRows(fieldsOf(whole['leaks']), limit > 0 ? rows.slice(0, limit) : rows),
  };
}

const sites = object({ count: num });

export function narrowSummary(raw: unknown, params: Params): unknown {
  const whole = fieldsOf(raw);
  const limit = numberOr(params['limit'], 5);
  const top = Object.entries(fieldsOf(whole['top'])).map(([cost, table]): [string, Table] => [
    cost,
    pickRows(fieldsOf(table), places(Math.min(sites(table, 'top').count, limit))),
  ]);
  return { ...whole, top: Object.fromEntries(top) };
}

const callGraph = object({
  edges: object({ count: num, caller: refs, callee: refs, inclusive: columns, inclusive_errors: orNull(columns) }),
  locations: object({ count: num, location: refs, inclusive: columns }),
  lines: object({ count: num, location: refs }),
  code: codeTables,
});
type CallGraph = Decoded<typeof callGraph>;

/** The function that the parameters name, by its id. */
function findFunction(graph: CallGraph, params: Params): number {
  const { functions, modules } = graph.code;
  if ((params['id'] ?? '') !== '') {
    return Number(params['id']);
  }
  const module = params['in_module'] ?? '';
  const place = functions.name.findIndex((name, index) => {
    const own = functions.module[index] ?? null;
    return name === params['name'] && (module === '' || (own === null ? '' : modules.path[own]) === module);
  });
  return functions.id[place] ?? -1;
}

/** The value of each cost in one row. */
function rowOf(table: Readonly<Record<string, readonly number[]>>, row: number): Record<string, number> {
  return Object.fromEntries(Object.entries(table).map(([cost, values]) => [cost, values[row] ?? 0]));
}

interface Neighbours {
  readonly ends: readonly (number | null)[];
  readonly rows: readonly number[];
}

/** What a function costs by itself; the errors are null if it is exact. */
interface OwnCosts {
  readonly costs: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, number>> | null;
}

function neighbourTable(graph: CallGraph, found: Neighbours, own: OwnCosts | null, sort: string): unknown {
  const hasOwn = own !== null && Object.values(own.costs).some((value) => value > 0);
  const ends = [...found.ends, ...(hasOwn ? [null] : [])];
  const columnsOf = (of: Readonly<Record<string, readonly number[]>>, last: Readonly<Record<string, number>> | null): Record<string, number[]> =>
    Object.fromEntries(Object.entries(of).map(([cost, values]) => [cost, [...found.rows.map((row) => values[row] ?? 0), ...(hasOwn ? [last?.[cost] ?? 0] : [])]]));
  const { inclusive, inclusive_errors: errors } = graph.edges;
  const table = {
    count: ends.length,
    function: ends,
    inclusive: columnsOf(inclusive, own?.costs ?? null),
    ...(errors === null ? {} : { inclusive_errors: columnsOf(errors, own?.errors ?? null) }),
  };
  const ids = ends.map((end) => (end === null ? Infinity : (graph.code.functions.id[end] ?? 0)));
  return pickRows(table, sortByCost(places(ends.length), table.inclusive[sort] ?? [], ids));
}

/**
 * /function from a table of functions and its call graph. `raw` has pairs of these: with folded
 * wrapper frames and, for functions that are folded everywhere, with all frames.
 */
export function functionOf([rawFunctions, rawGraph, ...others]: readonly unknown[], params: Params): unknown {
  const all = functionsTable(rawFunctions, 'functions');
  const graph = callGraph(rawGraph, 'call_graph');
  const id = findFunction(graph, params);
  const place = graph.code.functions.id.indexOf(id);
  const row = all.functions.function.findIndex((index) => all.code.functions.id[index ?? -1] === id);
  if (place < 0 || row < 0) {
    if (others.length > 0) {
      return functionOf(others, params);
    }
    throw new NotInReport('the report has no such function');
  }
  const sort = params['sort'] || 'peak_bytes';
  const { edges, locations } = graph;
  const own: OwnCosts = {
    costs: rowOf(all.functions.self, row),
    errors: all.functions.self_errors === null ? null : rowOf(all.functions.self_errors, row),
  };
  const calls = (ends: readonly (number | null)[], others: readonly (number | null)[]): Neighbours => {
    const rows = places(edges.count).filter((edge) => ends[edge] === place);
    return { rows, ends: rows.map((edge) => others[edge] ?? null) };
  };
  const lines = places(locations.count).filter((line) => graph.code.locations.function[locations.location[line] ?? -1] === place);
  const whole = fieldsOf(rawGraph);
  return {
    selection: whole['selection'],
    code: whole['code'],
    function: place,
    self: own.costs,
    inclusive: rowOf(all.functions.inclusive, row),
    callers: neighbourTable(graph, calls(edges.callee, edges.caller), null, sort),
    callees: neighbourTable(graph, calls(edges.caller, edges.callee), own, sort),
    locations: pickRows(fieldsOf(whole['locations']), sortByCost(lines, locations.inclusive[sort] ?? [], lines)),
  };
}

/** /source from the call graph: the costs of the lines, without their text. */
export function sourceOf(rawGraph: unknown, params: Params): unknown {
  const graph = callGraph(rawGraph, 'call_graph');
  const { locations, files } = graph.code;
  const lineAt = (row: number): number => locations.line[graph.lines.location[row] ?? -1] ?? 0;
  const rows = places(graph.lines.count)
    .filter((row) => files.path[locations.file[graph.lines.location[row] ?? -1] ?? -1] === params['file_path'])
    .sort((a, b) => lineAt(a) - lineAt(b));
  if (rows.length === 0) {
    throw new NotInReport('nothing in the report lies in this file');
  }
  const table = pickRows(fieldsOf(fieldsOf(rawGraph)['lines']), rows);
  return {
    selection: fieldsOf(rawGraph)['selection'],
    path: params['file_path'],
    is_readable: false,
    reason: 'a report holds no source files',
    text: null,
    is_newer: false,
    lines: { ...table, line: rows.map(lineAt) },
  };
}

