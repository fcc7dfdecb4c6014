// SPDX-License-Identifier: MIT
// Every table of every view as a file: the heads and all rows are those of the answers that the page asked for, with
// exact numbers and whole names. A table that is not listed here fails.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { itAtNight, readCsv, recordSource, recordWorkload, someOf, withStage } from './support.mjs';

const TITLES = {
  peak_bytes: 'Peak (bytes)', live_bytes: 'Leaked (bytes)', live_blocks: 'Leaked blocks', allocations: 'Allocations',
  temporary: 'Temporary', allocated_bytes: 'Allocated (bytes)',
};
const TABLE_COSTS = ['peak_bytes', 'live_bytes', 'allocations', 'temporary', 'allocated_bytes'];
const LEAK_COSTS = ['live_bytes', 'live_blocks'];

const rowsOf = (count) => Array.from({ length: count }, (_, row) => row);
const added = (title, word) => title.replace(/( \(bytes\))?$/, ` ${word}$1`);
const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);

function functionText({ functions, modules }, index, offset = '') {
  const module = functions.module[index] ?? null;
  return functions.name[index] || `${module === null ? 'unknown' : modules.name[module]}${offset === '' ? '' : `+${offset}`}`;
}

function placeText({ locations, files }, index) {
  const file = locations.file[index] ?? null;
  return file === null ? '' : `${baseName(files.path[file])}${locations.line[index] === 0 ? '' : `:${locations.line[index]}`}`;
}

function siteText(code, index) {
  const name = functionText(code, code.locations.function[index], code.locations.offset[index] ?? '');
  return [name, placeText(code, index)].filter((part) => part !== '').join(' ');
}

/** Columns are pairs of head and value. Costs of one recording, or old ones and new ones; with their errors, if there are any. */
function costs(keys, { now, old = null, errors = null }) {
  return keys.flatMap((key) => [
    ...(old === null ? [] : [[added(TITLES[key], 'before'), (row) => old[key][row]]]),
    [TITLES[key], (row) => now[key][row]],
    ...(errors === null ? [] : [[added(TITLES[key], '±'), (row) => errors[key][row]]]),
  ]);
}

const GROWTH = { growing: 'Growing', stopped: 'Stopped', start_up: 'Start-up', bounded: 'Bounded', sawtooth: 'Sawtooth', bursts: 'Bursts', late: 'Late', once: 'Once', unknown: 'Unknown' };

/** What a table must say, by its label: the answer of this route, a count of rows, and the columns. */
const EXPECTED = {
  'Gained before the peak': ['summary', ({ code, findings: { peak_rise: { sites } } }) => [sites.count, [
    ['Gained (bytes)', (row) => sites.gained_bytes[row]],
    ...(sites.gained_bytes_error == null ? [] : [['Gained ± (bytes)', (row) => sites.gained_bytes_error[row]]]),
    ['Peak without it (bytes)', (row) => sites.without_bytes[row]],
    ...(sites.without_bytes_error == null ? [] : [['Peak without it ± (bytes)', (row) => sites.without_bytes_error[row]]]),
    ['Call site', (row) => siteText(code, sites.location[row])],
    ['Thread', (row) => sites.thread_name[row] ?? ''],
  ]]],
  Functions: ['functions', ({ code, functions }) => [functions.count, [
    ['Function', (row) => functionText(code, functions.function[row])],
    ...costs(functions.old_inclusive == null ? TABLE_COSTS : TABLE_COSTS.slice(0, 3), { now: functions.inclusive, old: functions.old_inclusive ?? null }),
  ]]],
  Callers: ['function', ({ code, callers }) => [callers.count, [
    ['Callers', (row) => (callers.function[row] === null ? "the thread's entry" : functionText(code, callers.function[row]))],
    ...costs(['peak_bytes', 'allocations'], { now: callers.inclusive }),
  ]]],
  Callees: ['function', ({ code, callees }) => [callees.count, [
    ['Callees', (row) => (callees.function[row] === null ? 'itself' : functionText(code, callees.function[row]))],
    ...costs(['peak_bytes', 'allocations'], { now: callees.inclusive }),
  ]]],
  'Source lines': ['function', ({ code, locations }) => [locations.count, [
    ['Source line', (row) => placeText(code, locations.location[row]) || 'unknown'],
    ['Self (bytes)', (row) => locations.self.peak_bytes[row]],
    ['Inclusive (bytes)', (row) => locations.inclusive.peak_bytes[row]],
  ]]],
  Buckets: [/^(sizes|lifetimes)/, ({ unit, buckets }) => [buckets.bucket.length, [
    [`From (${unit})`, (row) => buckets.low[row]],
    [`To (${unit})`, (row) => buckets.high[row]],
    ['Blocks', (row) => buckets.blocks[row]],
    ...(buckets.blocks_error == null ? [] : [['Blocks ±', (row) => buckets.blocks_error[row]]]),
    ['Bytes', (row) => buckets.bytes[row]],
    ...(buckets.bytes_error == null ? [] : [['Bytes ±', (row) => buckets.bytes_error[row]]]),
  ]]],
  Leaks: ['leaks', ({ code, leaks }) => [leaks.count, [
    ['Call site', (row) => siteText(code, leaks.location[row])],
    ...costs(LEAK_COSTS, { now: leaks.costs, errors: leaks.errors ?? null }),
    ['Growth', (row) => GROWTH[leaks.growth[row]]],
    ['Growth is sure', (row) => leaks.growth_confidence[row]],
    ['Grew until (ms)', (row) => leaks.grew_until_ms[row] ?? ''],
    ['Slope (bytes/s)', (row) => leaks.slope_bytes_per_s[row] ?? ''],
    ...(leaks.slope_error == null ? [] : [['Slope ± (bytes/s)', (row) => leaks.slope_error[row] ?? '']]),
    ['Over (ms)', (row) => leaks.slope_ms[row] ?? ''],
    ['First (ms)', (row) => leaks.first_ms[row] ?? ''],
    ['Last (ms)', (row) => leaks.last_ms[row] ?? ''],
  ]]],
  Processes: [/^processes\?.*live_bytes/, ({ processes }) => [processes.count, [
    ['Process', (row) => processes.command_line[row]],
    ['Id', (row) => processes.pid[row]],
    ['Peak RSS (bytes)', (row) => processes.peak_rss_bytes[row] || 'not sampled'],
    ...costs(TABLE_COSTS, { now: processes.costs }),
  ]]],
  Threads: [/^threads\?.*live_bytes/, ({ threads }) => [threads.count, [
    ['Thread', (row) => threads.name[row]],
    ['Threads of this name', (row) => threads.merged_count[row]],
    ['Id', (row) => threads.thread_id[row]],
    ['Started (ms)', (row) => threads.start_ms[row]],
    ['Ended (ms)', (row) => threads.end_ms[row]],
    ...costs(TABLE_COSTS, { now: threads.costs }),
  ]]],
  Modules: [/^modules\?.*live_bytes/, ({ modules }) => [modules.count, [
    ['Module', (row) => modules.path[row]],
    ...costs(TABLE_COSTS, { now: modules.costs }),
  ]]],
  Mappings: ['rss', ({ code, kinds, mappings }) => [mappings.count, [
    ['Mapping', (row) => mappings.path[row] || 'anonymous'],
    ['Kind', (row) => kinds.phrase[kinds.key.indexOf(mappings.kind[row])]],
    ['Mapped by', (row) => (mappings.location[row] === null ? '' : siteText(code, mappings.location[row]))],
    ['Areas', (row) => mappings.areas[row]],
    ['RSS (bytes)', (row) => mappings.rss_bytes[row]],
    ['Virtual (bytes)', (row) => mappings.virtual_bytes[row]],
    ['Swapped (bytes)', (row) => mappings.swap_bytes[row]],
  ], (row) => mappings.virtual_bytes[row] + mappings.rss_bytes[row] + mappings.swap_bytes[row] > 0]],
  'Call sites that keep almost empty pages resident': ['rss', ({ code, survivors, moment_ms }) => [survivors.count, [
    ['Call site', (row) => siteText(code, survivors.location[row])],
    ['Holds (bytes)', (row) => survivors.held_bytes[row]],
    ['Blocks', (row) => survivors.blocks[row]],
    ['Of (bytes)', (row) => survivors.block_bytes[row]],
    ['Oldest from (ms)', (row) => survivors.oldest_ms[row]],
    ['Newest from (ms)', (row) => survivors.newest_ms[row]],
  ], (row) => survivors.time_ms[row] === moment_ms]],
  Files: ['files', ({ groups }) => [groups.count, [
    ['File', (row) => groups.name[row]],
    ['Peak (bytes)', (row) => groups.costs.peak_bytes[row]],
  ], (row) => groups.name[row] !== '' && groups.costs.peak_bytes[row] > 0]],
  Source: ['source', ({ lines, text }) => [text.split('\n').length, [
    ['Peak, self (bytes)', (row) => lines.self.peak_bytes[lines.line.indexOf(row + 1)] ?? 0],
    ['Inclusive (bytes)', (row) => lines.inclusive.peak_bytes[lines.line.indexOf(row + 1)] ?? 0],
    ['Line', (row) => row + 1],
    ['Source', (row) => text.split('\n')[row]],
  ]]],
};
/** In a comparison. */
const EXPECTED_PAIRS = {
  ...EXPECTED,
  Leaks: [/^(stacks|call_sites)/, ({ code, stacks, sites, frames }) => [(stacks ?? sites).count, [
    stacks === undefined
      ? ['Function that asked', (row) => functionText(code, code.locations.function[sites.location[row]])]
      : ['Stack, by the function that asked', (row) => functionText(code, frames.function[stacks.frame_first[row] + stacks.site_frame[row]])],
    ...costs(LEAK_COSTS, { now: (stacks ?? sites).costs, old: (stacks ?? sites).old_costs }),
  ]]],
};

/** Remembers the answers to the page: those of a route, or of routes with parameters that match. The pickers ask some routes, too. */
function listen(viewer) {
  const answers = [];
  viewer.page.on('response', (response) => {
    const { pathname, search } = new URL(response.url());
    if (pathname.startsWith('/api/v1/') && response.ok()) {
      answers.push({ route: pathname.slice('/api/v1/'.length), search, json: response.json().catch(() => null) });
    }
  });
  return async (route) => {
    const asked = answers.filter((one) => (typeof route === 'string' ? one.route === route : route.test(one.route + one.search)));
    return (await Promise.all(asked.map((one) => one.json))).filter((json) => json !== null);
  };
}

/** A text that a spreadsheet could take for a formula has an apostrophe. */
const cellText = (value) => (typeof value === 'string' && /^[=+\-@]/.test(value) ? `'${value}` : String(value));

async function compare(name, text, answered, expected) {
  const [route, tell] = expected;
  const json = (await answered(route)).at(-1);
  assert.ok(json !== undefined, `${name}: the page asked for no ${route}`);
  const [count, columns, isShown = () => true] = tell(json);
  const [heads, ...rows] = readCsv(text);
  assert.deepEqual(heads, columns.map(([head]) => head), name);
  const wanted = rowsOf(count).filter(isShown).map((row) => columns.map(([, value]) => cellText(value(row))));
  assert.ok(wanted.length > 0, name);
  assert.deepEqual(rows.map((row) => row.join('\t')).sort(), wanted.map((row) => row.join('\t')).sort(), name);
}

/** The paths of the rows of a tree, with their costs, from all the parts that the page asked for. */
async function compareTree(name, text, answered) {
  const isDiff = name.includes('diff=1');
  const keys = isDiff ? ['peak_bytes', 'live_bytes', 'allocations'] : ['peak_bytes', 'live_bytes', 'allocations', 'temporary'];
  const known = new Set();
  for (const { code, nodes } of await answered('tree')) {
    for (const row of rowsOf(nodes.count)) {
      const shown = keys.flatMap((key) => [...(isDiff ? [nodes.old_total[key][row]] : []), nodes.total[key][row]]);
      known.add([cellText(functionText(code, nodes.function[row])), ...shown].join('\t'));
    }
  }
  const [heads, ...rows] = readCsv(text);
  assert.deepEqual(heads, ['Level', 'Function', ...keys.flatMap((key) => [...(isDiff ? [added(TITLES[key], 'before')] : []), TITLES[key]])], name);
  assert.ok(rows.length > 2, name);
  for (const [level, ...cells] of rows) {
    assert.match(level, /^\d+$/);
    assert.ok(known.has(cells.join('\t')), `${name}: ${cells.join(', ')} is in no answer`);
  }
}

/** Saves every table of a view, and compares each with what the page was told. */
async function compareTables(viewer, answered, fragment, labels, expected = EXPECTED) {
  await viewer.open(fragment);
  const buttons = viewer.page.locator('.table-foot button[aria-label$=" as CSV"]');
  const found = (await buttons.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label').replace(/ as CSV$/, '')))).map((label) => label.replace(/^Source \/.*/, 'Source'));
  assert.deepEqual(found, labels, fragment);
  for (const [place, label] of labels.entries()) {
    const text = (await viewer.download(buttons.nth(place))).bytes.toString('utf8');
    const name = `${label} of ${fragment}`;
    await (label.endsWith(' tree') ? compareTree(name, text, answered) : compare(name, text, answered, expected[label]));
  }
}

let file;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
});

function compareAll(title, prepare, views, expected) {
  describe(title, () => {
    let viewer, answered;
    before(async () => {
      ({ viewer } = await stage.open(...prepare()));
      answered = listen(viewer);
    });
    for (const [fragment, ...labels] of someOf(views, 4)) {
      it(`${fragment}: ${labels.join(', ') || 'no table'}`, () => compareTables(viewer, answered, fragment, labels, expected));
    }
  });
}

compareAll('a recording', () => [file], [
  ['#/summary'],
  ['#/peak', 'Gained before the peak'],
  ['#/flame'],
  ['#/bottom-up?wrappers=1', 'Bottom-up tree'],
  ['#/top-down?wrappers=1', 'Top-down tree'],
  ['#/functions?wrappers=1&fn=churn(int)', 'Functions', 'Callers', 'Callees', 'Source lines'],
  ['#/charts'],
  ['#/sizes', 'Buckets'],
  ['#/sizes?histogram=lifetimes', 'Buckets'],
  ['#/sizes?histogram=size_lifetime'],
  ['#/leaks?leaks_by=stack', 'Leaks'],
  ['#/leaks?leaks_by=call_site', 'Leaks'],
  ['#/threads', 'Processes', 'Threads', 'Modules'],
  ['#/rss?mappings_by=each', 'Mappings'],
  ['#/source', 'Files', 'Source'],
]);

compareAll('a sampled recording', () => [recordWorkload(stage.folder, 'sampled.cairn', [], ['--sample=4KiB'])], [
  ['#/peak', 'Gained before the peak'],
  ['#/sizes', 'Buckets'],
  ['#/leaks?leaks_by=call_site', 'Leaks'],
]);

compareAll('a comparison', () => [recordWorkload(stage.folder, 'more.cairn', ['more']), ['--diff', file]], [
  ['#/bottom-up?diff=1&wrappers=1', 'Bottom-up tree'],
  ['#/functions?diff=1&wrappers=1', 'Functions'],
  ['#/leaks?diff=1&leaks_by=stack', 'Leaks'],
  ['#/leaks?diff=1&leaks_by=call_site', 'Leaks'],
], EXPECTED_PAIRS);

describe('a fragmented heap', () => {
  itAtNight('has its survivors, beside the mappings of that moment', async () => {
    const { viewer } = await stage.open(recordSource(stage.folder, '../programs/resident/survivors.c'));
    const answered = listen(viewer);
    await viewer.open('#/rss');
    const { breakdowns } = await viewer.ask('rss');
    await compareTables(viewer, answered, `#/rss?mappings_by=each&moment=${breakdowns.time_ms.at(-1)}`, ['Call sites that keep almost empty pages resident', 'Mappings']);
  });
});
