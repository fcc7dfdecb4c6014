// SPDX-License-Identifier: MIT
// Whole tables, every row and every cost, beside `cairn report --json` on the same file; and in a comparison beside the
// JSON of both files. numbers.spec.mjs has the figures outside of tables, and filters.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { comparedNumbers, exactNumber, humanBytes, humanCount, recordFamily, recordTurns, recordWorkload, report, withStage } from './support.mjs';

const COSTS = ['peak_bytes', 'live_bytes', 'allocations', 'temporary', 'allocated_bytes'];
const TALL = { width: 1280, height: 4000 }; // a table draws the rows that are in sight

let file, old, viewer, family, diff;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'new.cairn', ['more']);
  old = recordWorkload(stage.folder, 'old.cairn');
  ({ viewer } = await stage.open(file));
  ({ viewer: family } = await stage.open(recordFamily(stage.folder, 'family.cairn')));
  ({ viewer: diff } = await stage.open(file, ['--diff', old]));
  await Promise.all([viewer, family, diff].map((shown) => shown.page.setViewportSize(TALL)));
});

const sorted = (rows) => rows.map((row) => JSON.stringify(row)).sort();
const costsOf = (row) => row.costs.map(exactNumber);
const valuesOf = (costs, keys = COSTS) => keys.map((key) => costs[key]);

/** The rows of a table as [text, ...] of what `read` takes from each. */
async function table(of, label, read) {
  const rows = await of.rows(label);
  assert.ok(rows.length > 0, label);
  return sorted(rows.map(read));
}

describe('sizes and lifetimes', () => {
  for (const kind of ['sizes', 'lifetimes']) {
    it(`${kind} have the blocks and bytes of the report in each bucket`, async () => {
      const wanted = report(file, ['--histogram'])[kind].buckets.map((bucket) => [bucket.blocks, bucket.bytes]);
      await viewer.open(`#/sizes?histogram=${kind}`);
      assert.deepEqual((await viewer.rows('Buckets')).map(costsOf), wanted);
      const titles = await viewer.page.getByTestId('bars').locator('g > title').allTextContents();
      assert.deepEqual(titles.map((title) => /: (.*), (.*)$/.exec(title).slice(1)), wanted.map(([blocks, bytes]) => [`${humanCount(blocks)} ${blocks === 1 ? 'block' : 'blocks'}`, humanBytes(bytes)]));
    });
  }
});

describe('threads, processes and modules', () => {
  const wantedOf = (of) => ({
    Threads: sorted(of.threads.map((one) => [String(one.thread_id), ...valuesOf(one.costs)])),
    Processes: sorted(of.processes.map((one) => [String(one.pid), one.peak_rss_bytes === 0 ? 'not sampled' : humanBytes(one.peak_rss_bytes), ...valuesOf(one.costs)])),
    Modules: sorted(of.modules.map((one) => [one.path, ...valuesOf(one.costs)])),
  });

  it('have each cost of the report', async () => {
    for (const [of, path] of [[viewer, file], [family, `${stage.folder}/family.cairn`]]) {
      await of.open('#/threads');
      assert.deepEqual({
        Threads: await table(of, 'Threads', (row) => [row.cells[1], ...costsOf(row)]),
        Processes: await table(of, 'Processes', (row) => [row.cells[1], row.cells[2], ...costsOf(row)]),
        Modules: await table(of, 'Modules', (row) => [row.name, ...costsOf(row)]),
      }, wantedOf(report(path)));
    }
  });
});

describe('the summary', () => {
  it('says why more is leaked than was live at once', async () => {
    const { viewer: turns } = await stage.open(recordTurns(stage.folder, 'turns.cairn'));
    const { totals } = report(`${stage.folder}/turns.cairn`);
    assert.ok(totals.live_bytes > totals.peak_bytes);
    const note = async (of) => (await of.open('#/summary'), of.page.locator('.figures').innerText());
    assert.match(await note(turns), /unfreed blocks, left by processes one after the other/);
    assert.doesNotMatch(await note(viewer), /one after the other/);
  });
});

describe('functions', () => {
  for (const [by, key, wrappers, options] of [
    ['0', 'inclusive', '', []], ['1', 'self', '', []],
    ['0', 'inclusive', '1', ['--show-wrappers']], ['1', 'self', '1', ['--show-wrappers']],
  ]) {
    it(`have each ${key} cost of the report${wrappers === '' ? '' : ', with wrappers'}`, async () => {
      const { functions } = report(file, ['--functions', ...options]).functions;
      await viewer.open(`#/functions?wrappers=${wrappers}&by_self=${by}`);
      assert.deepEqual(await table(viewer, 'Functions', (row) => [row.name, ...costsOf(row)]),
        sorted(functions.map((one) => [one.function, ...valuesOf(one[key])])));
    });
  }

  it('have the callers and callees of the report', async () => {
    const keys = ['allocations', 'peak_bytes'];
    for (const name of ['keep_cache()', 'churn(int)', 'main', 'fibonacci(int)']) {
      const [wanted] = report(file, ['--callers', `^${name.replace(/\(.*/, '')}$`]).callers.filter((one) => one.function === name);
      await viewer.open(`#/functions?cost=allocations&fn=${encodeURIComponent(name)}`);
      const rows = async (label) => sorted((await viewer.rows(label)).map((row) => [row.name, ...costsOf(row)]));
      const of = (list, none) => sorted(list.map((one) => [one.function ?? none, ...valuesOf(one.inclusive, keys)]));
      assert.deepEqual(await rows('Callers'), of(wanted.callers, "the thread's entry"), name);
      assert.deepEqual(await rows('Callees'), of(wanted.callees, 'itself'), name);
      const self = valuesOf(wanted.self, keys);
      assert.deepEqual(wanted.callees.filter((one) => one.function === null).map((one) => valuesOf(one.inclusive, keys)),
        self.some((value) => value > 0) ? [self] : [], name);
    }
  });
});

describe('leaks', () => {
  it('by call site have bytes, blocks, growth and slope of the report', async () => {
    const { leaks } = report(file, ['--leaks']).leaks;
    await viewer.open('#/leaks?leaks_by=call_site');
    assert.deepEqual(await table(viewer, 'Leaks', (row) => [row.name, ...costsOf(row), /^Grow/.test(row.cells[4]), row.cells[5], row.cells[6] !== '']),
      sorted(leaks.map((leak) => [leak.function, leak.costs.live_bytes, leak.costs.live_blocks, leak.growth === 'growing',
        leak.slope_bytes_per_s === null ? '' : `+${humanBytes(leak.slope_bytes_per_s)}/s`, leak.slope_ms !== null])));
  });

  it('by stack have bytes and blocks of the report', async () => {
    const wanted = report(file).top.live_bytes.flatMap((site) => site.stacks.map((stack) => [site.function, stack.costs.live_bytes, stack.costs.live_blocks]));
    await viewer.open('#/leaks?leaks_by=stack');
    assert.deepEqual(await table(viewer, 'Leaks', (row) => [row.name, ...costsOf(row)]), sorted(wanted));
  });
});

describe('the RSS breakdown', () => {
  it('has at its highest moment each part of the report', async () => {
    const { rss } = report(file, ['--rss']);
    const peak = rss.breakdowns.find((one) => one.is_peak);
    await viewer.open('#/rss');
    const shown = await viewer.page.getByTestId('breakdown-legend').locator('dl > div').evaluateAll(
      (rows) => rows.map((row) => [row.querySelector('dt').textContent.trim(), row.querySelector('dd').firstChild.textContent.trim()]));
    const wanted = [['RSS', humanBytes(peak.rss_bytes)], ...rss.kinds.map((kind) => [kind.phrase, humanBytes(peak[`${kind.key}_bytes`])])];
    assert.deepEqual(shown.slice(0, wanted.length), wanted);
  });
});

describe('source', () => {
  it('lists the files with the costs of the report', async () => {
    const { groups } = report(file, ['--group-by=file']).groups;
    for (const cost of ['peak_bytes', 'allocations']) {
      await viewer.open(`#/source?cost=${cost}`);
      const named = groups.filter((one) => one.name.endsWith('workload.cpp'));
      assert.equal(named.length, 1);
      const row = (await viewer.rows('Files')).find((one) => one.name === 'workload.cpp' || one.name === named[0].name);
      assert.equal(costsOf(row)[0], named[0].costs[cost]);
    }
  });
});

describe('why the peak', () => {
  it('has the gains of the report', async () => {
    const { peak_rise: rise } = report(file).findings;
    await viewer.open('#/peak');
    assert.deepEqual((await viewer.rows('Gained before the peak')).map((row) => [...costsOf(row), row.cells[1], row.cells[3]]),
      rise.sites.map((site) => [site.gained_bytes, humanBytes(site.without_bytes), site.thread_name]));
  });
});

describe('a comparison', () => {
  it('has both costs of each function, as the two reports have them', async () => {
    const costs = (path) => new Map(report(path, ['--functions']).functions.functions.map((one) => [one.function, one.inclusive]));
    const [now, before] = [costs(file), costs(old)];
    for (const cost of ['allocations', 'live_bytes']) {
      await diff.open(`#/functions?diff=1&cost=${cost}`);
      const rows = await diff.rows('Functions');
      assert.deepEqual(rows.map((row) => row.name).sort(), [...new Set([...now.keys(), ...before.keys()])].sort());
      for (const row of rows) {
        const title = row.costs.find((text) => text.startsWith(cost === 'allocations' ? 'Allocations' : 'Leaked'));
        const shown = comparedNumbers(title, '');
        assert.deepEqual([shown.old, shown.now], [before.get(row.name)?.[cost] ?? 0, now.get(row.name)?.[cost] ?? 0], row.name);
      }
    }
  });

  it('has both totals in the summary', async () => {
    const [now, before] = [report(file).totals, report(old).totals];
    await diff.open('#/summary?diff=1');
    for (const cost of ['live_bytes', 'allocated_bytes']) {
      assert.equal(await diff.text(`figure-${cost}`), humanBytes(now[cost]));
      const change = now[cost] - before[cost];
      assert.ok(change > 0 && (await diff.page.locator('.figures').innerText()).includes(`+${humanBytes(change)} (`), cost);
    }
  });

  it('has both counts of blocks in each bucket of sizes', async () => {
    const buckets = (path) => new Map(report(path, ['--histogram']).sizes.buckets.map((one) => [one.low, one.blocks]));
    const [now, before] = [buckets(file), buckets(old)];
    await diff.open('#/sizes?diff=1');
    const rows = await diff.rows('Buckets');
    const lows = [...new Set([...now.keys(), ...before.keys()])].sort((a, b) => a - b);
    assert.deepEqual(rows.map((row) => comparedNumbers(row.costs[0], '')).map((one) => [one.old, one.now]),
      lows.map((low) => [before.get(low) ?? 0, now.get(low) ?? 0]));
  });
});
