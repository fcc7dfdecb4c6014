// Decoders for the answers of the routes (docs/format/json.md); their types follow from the
// decoders. Only the fields that the viewer reads are here.
import { bool, figure, figures, flag, list, num, numberColumns, nums, object, orNull, record, refs, str, type Decode, type Decoded } from './decode';

const costs = record(figures);
const totals = record(figure);
const texts = list(str);
const nullableTexts = list(orNull(str));
const nullableNums = list(orNull(num));
const flags = list(flag);

export const code = object({
  functions: object({ id: nums, name: texts, short: nullableTexts, module: refs, wrapper: flags }),
  locations: object({ function: refs, file: refs, line: nums, offset: texts, wrapper: flags }),
  modules: object({ path: texts, name: texts }),
  files: object({ path: texts }),
});

const bucketRange = orNull(object({ min: num, max: num }));

const selection = object({
  /** Ranges as they are applied: rounded outwards to what the recording tells apart. */
  filter: object({ time: orNull(object({ from_ms: num, to_ms: num })), size_bytes: bucketRange, lifetime_ms: bucketRange }),
  totals,
  recording_totals: totals,
  unavailable: texts,
  /** The part of the leaked costs that suppressions removed. */
  suppressed: object({ live_bytes: num, live_blocks: num }),
  baseline_totals: orNull(totals),
  /** Two standard errors of estimates; null: exact. */
  totals_errors: orNull(totals),
  baseline_totals_errors: orNull(totals),
});

/** The metadata of nearly every answer. */
export const stamp = object({ generation: orNull(num) });

const run = object({
  program: str,
  command_line: str,
  pid: num,
  host: str,
  kernel: str,
  libc: str,
  memory_bytes: num,
  cpu_count: num,
  start_unix_ms: num,
  state: str,
  ended: bool,
  wait_status: orNull(num),
  checkpoint_interval_ms: num,
  max_frames: num,
  recorded_by: str,
  source_format: str,
  /** Costs that an imported file does not have: their figures are meaningless. */
  unknown: texts,
  sampling: orNull(object({ allocations: num, recorded_allocations: num, sentence: str })),
});

const markTable = object({ count: num, time_ms: nums, kind: texts, text: texts });

/** Marks of the time line, one object each. */
const marks: Decode<readonly { readonly time_ms: number; readonly kind: string; readonly text: string }[]> = (value, path) => {
  const table = markTable(value, path);
  return table.time_ms.map((time_ms, row) => ({ time_ms, kind: table.kind[row] ?? '', text: table.text[row] ?? '' }));
};

export const meta = object({
  generation: num,
  tool_version: str,
  file: object({ name: str, path: str, bytes: num }),
  state: str,
  damage: orNull(str),
  run,
  runtime_ms: num,
  slice_ms: num,
  slice_count: num,
  processes: num,
  threads: num,
  baseline: orNull(object({ file: object({ name: str }), run, runtime_ms: num })),
  capabilities: record(bool),
  marks,
  editor: orNull(str),
});

const topSites = object({
  count: num,
  location: refs,
  inlined: flags,
  stack_count: nums,
  costs,
  errors: orNull(costs),
});

const findings = object({
  items: object({
    count: num, kind: texts, sentence: texts,
    confidence: texts,
    location: refs,
    bytes: nums,
    whole_bytes: nums,
    bytes_error: orNull(nums),
    lower_limit: orNull(flags),
    look: texts,
    /** Of whom it is about; 0: nobody. */
    pid: nums, thread_id: nums,
  }),
  /** What became of each finding since the old recording; null without one. */
  changes: orNull(
    object({
      count: num, kind: texts, class: texts, location: refs, sentence: texts, confidence: texts, look: texts,
      pid: nums, thread_id: nums, old: nullableNums, new: nullableNums, change: nullableNums, change_error: nullableNums,
    }),
  ),
  /** Null without time slices, and for a part of the recording. */
  peak_rise: orNull(
    object({
      trough_ms: num,
      trough_bytes: num,
      peak_ms: num,
      peak_bytes: num,
      mark: orNull(str),
      freed_bytes: num,
      trough_bytes_error: orNull(num),
      peak_bytes_error: orNull(num),
      freed_bytes_error: orNull(num),
      total_count: num,
      sites: object({
        count: num,
        location: refs,
        gained_bytes: nums,
        without_bytes: nums,
        gained_bytes_error: orNull(nums),
        without_bytes_error: orNull(nums),
        thread_name: nullableTexts,
      }),
    }),
  ),
});

export const summary = object({
  selection,
  totals,
  baseline_totals: orNull(totals),
  top: record(topSites),
  health: object({ lost_events: num, frames: num, frames_with_function: num, frames_with_line: num }),
  /** Executed programs that are not recorded. */
  unrecorded: object({
    execs: num,
    descendants_at_least: num,
    programs: object({ count: num, program: texts, text: texts, execs: nums }),
  }),
  /** Processes whose heap is not the memory that they use. */
  unseen: object({ count: num, pid: nums, executable: texts, reason: texts, anonymous_bytes: nums, mapped_bytes: nums, heap_bytes: nums }),
  findings,
  code,
});

export const verdict = object({ verdict: orNull(object({ grew: bool, sentence: str })) });

export const health = object({
  damage: orNull(str),
  counters: object({ count: num, name: texts, text: texts, kind: texts, value: nums }),
  modules: object({
    count: num,
    path: texts,
    name: texts,
    build_id: texts,
    frames: nums,
    frames_with_function: nums,
    frames_with_line: nums,
    symbol_source: texts,
    symbol_advice: texts,
  }),
});

export const tree = object({
  selection,
  total_nodes: num,
  complete: bool,
  nodes: object({
    count: num,
    id: nums,
    parent: refs,
    depth: nums,
    function: refs,
    /** Of one of its frames. */
    location: orNull(refs),
    inlined: flags,
    child_count: nums,
    self: costs,
    total: costs,
    hidden: orNull(nums),
    path: orNull(nums),
    unfolded_by: orNull(nums),
    matched: orNull(nums),
    old_self: orNull(costs),
    old_total: orNull(costs),
    self_errors: orNull(costs),
    total_errors: orNull(costs),
    old_total_errors: orNull(costs),
  }),
  search: orNull(object({ matched_nodes: num, totals, totals_errors: orNull(totals) })),
  code,
});

const stackTable = object({ count: num, costs, frame_first: nums, frame_count: nums });
const frameTable = object({ location: refs, inlined: flags });

/** Two recordings: stacks matched by function. */
export const stackPairs = object({
  selection,
  total_count: num,
  stacks: object({ count: num, costs, old_costs: costs, errors: orNull(costs), old_errors: orNull(costs), frame_first: nums, frame_count: nums, site_frame: nums }),
  frames: object({ function: refs, inlined: flags }),
  code,
});

export const stacks = object({
  selection,
  total_count: num,
  stacks: stackTable,
  frames: frameTable,
  code,
});

export const functions = object({
  selection,
  total_count: num,
  functions: object({
    count: num,
    function: refs,
    self: costs,
    inclusive: costs,
    old_self: orNull(costs),
    old_inclusive: orNull(costs),
    self_errors: orNull(costs),
    inclusive_errors: orNull(costs),
    old_self_errors: orNull(costs),
    old_inclusive_errors: orNull(costs),
  }),
  code,
});

export const callSites = object({
  selection,
  total_count: num,
  sites: object({ count: num, location: refs, inlined: flags, stack_count: nums, costs, old_costs: orNull(costs), errors: orNull(costs), old_errors: orNull(costs) }),
  code,
});

const neighbours = object({
  count: num,
  function: refs,
  inclusive: costs,
  old_inclusive: orNull(costs),
  inclusive_errors: orNull(costs),
  old_inclusive_errors: orNull(costs),
});

export const functionDetail = object({
  selection,
  function: orNull(num),
  self: totals,
  inclusive: totals,
  callers: neighbours,
  callees: neighbours,
  locations: object({ count: num, location: refs, self: costs, inclusive: costs, self_errors: orNull(costs), inclusive_errors: orNull(costs) }),
  code,
});

/** Source files, by the costs of the call sites in them. */
export const files = object({
  selection,
  groups: object({ count: num, name: texts, costs, errors: orNull(costs) }),
});

export const source = object({
  selection,
  path: str,
  is_readable: bool,
  reason: orNull(str),
  text: orNull(str),
  is_newer: bool,
  lines: object({
    count: num,
    line: nums,
    self: costs,
    inclusive: costs,
    old_self: orNull(costs),
    old_inclusive: orNull(costs),
    self_errors: orNull(costs),
    inclusive_errors: orNull(costs),
    old_self_errors: orNull(costs),
    old_inclusive_errors: orNull(costs),
  }),
});

const errors = orNull(figures);
const seriesErrors = { allocations_error: errors, allocated_bytes_error: errors, temporary_error: errors, live_bytes_error: errors, live_max_bytes_error: errors };

export const series = object({
  selection,
  slice_ms: num,
  points: object({
    count: num,
    start_ms: nums,
    end_ms: nums,
    ...{ allocations: figures, allocated_bytes: figures, temporary: figures, live_bytes: figures, live_max_bytes: figures },
    ...seriesErrors,
  }),
  top: list(object({ location: orNull(num), frames: refs, score: num, values: nums, errors: orNull(nums) })),
  rest: nums,
  rest_errors: orNull(nums),
  rss: object({ count: num, time_ms: nums, rss_bytes: nums }),
  peak: object({ time_ms: figure, bytes: figure, error: orNull(num) }),
  code,
});

export const histogram = object({
  unit: str,
  buckets: object({ bucket: nums, low: nums, high: nums, blocks: nums, bytes: nums, blocks_error: orNull(nums), bytes_error: orNull(nums) }),
  top: list(object({ location: orNull(num), blocks: nums, bytes: nums })),
  rest: object({ blocks: nums, bytes: nums }),
  code,
});

const bounds = object({ low: nums, high: nums });

export const sizeLifetime = object({
  sizes: bounds,
  lifetimes: bounds,
  cells: object({ size: nums, lifetime: nums, blocks: nums, estimated_blocks: nums, error: orNull(nums) }),
  certain_blocks: num,
  total_blocks: num,
});

export const leaks = object({
  selection,
  total_count: num,
  leaks: object({
    count: num,
    location: refs,
    inlined: flags,
    stack_count: nums,
    frame_first: nums,
    frame_count: nums,
    costs,
    errors: orNull(costs),
    growth: texts,
    growth_confidence: texts,
    slope_bytes_per_s: refs,
    slope_error: orNull(refs),
    slope_ms: refs,
    grew_until_ms: refs,
    first_ms: refs,
    last_ms: refs,
  }),
  /** By row, in parts of the run; none for rows beyond the first ones. */
  history_parts: orNull(num),
  history: orNull(nums),
  frames: frameTable,
  suppressions: object({
    count: num,
    pattern: texts,
    stack_count: nums,
    live_bytes: nums,
    live_blocks: nums,
  }),
  code,
});

const breakdownTable = object({
  count: num,
  time_ms: nums,
  rss_bytes: nums,
  requested_bytes: nums,
  swap_bytes: nums,
  has_mappings: flags,
  empty_page_bytes: nums,
  sparse_page_bytes: nums,
  sparse_block_bytes: nums,
  is_peak: flags,
  live_is_estimate: flags,
});
type Breakdowns = Decoded<typeof breakdownTable> & { readonly columns: Readonly<Record<string, readonly number[]>> };

/** A table whose answer lists its columns, and the columns that are always present. */
const breakdowns: Decode<Breakdowns> = (value, path) => ({ ...breakdownTable(value, path), columns: numberColumns(value, path) });

export const rss = object({
  samples: object({
    count: num,
    time_ms: nums,
    rss_bytes: nums,
    /** Null if unknown. */
    anonymous_bytes: refs,
    file_bytes: refs,
    shmem_bytes: refs,
    swap_bytes: refs,
    minor_faults: refs,
    major_faults: refs,
    live_bytes: refs,
    other_anonymous_bytes: refs,
  }),
  kinds: object({ count: num, key: texts, phrase: texts }),
  /** The call sites whose blocks keep almost empty pages resident at the moment. */
  survivors: object({ count: num, time_ms: nums, blocks: nums, block_bytes: nums, held_bytes: nums, oldest_ms: nums, newest_ms: nums, location: refs }),
  /** The heap of each allocator at the moment. */
  allocators: object({ count: num, time_ms: nums, name: texts, module: texts, live_bytes: nums, rounding_bytes: nums, kept_bytes: nums, rest_bytes: nums }),
  breakdowns,
  moment_ms: orNull(num),
  mappings: object({
    count: num,
    path: texts,
    kind: texts,
    areas: nums,
    rss_bytes: nums,
    virtual_bytes: nums,
    swap_bytes: nums,
    location: refs,
  }),
  code,
  peak_rss_bytes: num,
  peak_rss_ms: num,
});

/** Events that the program reported itself: not heap, and always of the whole run. */
export const adhoc = object({
  total_count: num,
  entries: object({ count: num, name: texts, pid: nums, events: nums, weight: nums, frame_first: nums, frame_count: nums }),
  frames: frameTable,
  code,
});

export const threads = object({
  selection,
  threads: object({
    count: num,
    thread_id: nums,
    pid: nums,
    name: texts,
    merged_count: nums,
    start_ms: nums,
    end_ms: nums,
    costs,
    errors: orNull(costs),
  }),
});

export const processes = object({
  selection,
  processes: object({
    count: num,
    pid: nums,
    parent_pid: nums,
    executable: texts,
    command_line: texts,
    allocator: texts,
    start_ms: nums,
    end_ms: nums,
    process_peak_bytes: figures,
    peak_rss_bytes: nums,
    costs,
    errors: orNull(costs),
  }),
});

export const modules = object({
  selection,
  modules: object({ count: num, path: texts, name: texts, costs, errors: orNull(costs) }),
});

export const problem = object({
  error: object({ code: str, message: str }),
});

export type Meta = Decoded<typeof meta>;
export type Selection = Decoded<typeof selection>;
export type Summary = Decoded<typeof summary>;
export type Findings = Decoded<typeof findings>;
export type Tree = Decoded<typeof tree>;
export type Stacks = Decoded<typeof stacks>;
export type StackPairs = Decoded<typeof stackPairs>;
export type CallSites = Decoded<typeof callSites>;
export type Functions = Decoded<typeof functions>;
export type FunctionDetail = Decoded<typeof functionDetail>;
export type Series = Decoded<typeof series>;
export type Histogram = Decoded<typeof histogram>;
export type Leaks = Decoded<typeof leaks>;
export type Rss = Decoded<typeof rss>;
export type Adhoc = Decoded<typeof adhoc>;
