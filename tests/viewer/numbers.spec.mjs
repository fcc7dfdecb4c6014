// SPDX-License-Identifier: MIT
// The numbers on screen are those of `cairn report --json` on the same file with the same filter, in every view.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { costOfFunction, exactNumber, humanBytes, humanCount, itAtNight, recordSource, recordWorkload, report, serve, someOf, Viewer, withStage } from './support.mjs';

let file, server, viewer, reported;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
  reported = report(file);
  ({ server, viewer } = await stage.open(file));
});

const SPELLING = { peak_bytes: humanBytes, live_bytes: humanBytes, allocations: humanCount, temporary: humanCount, allocated_bytes: humanBytes };
const SECTIONS = ['peak_bytes', 'live_bytes', 'allocations', 'temporary'];

/** What a name reads as in a label or title, without what the compiler adds. */
const plain = (name) => name.replace(/\(.*/, '');

describe('the recording is what the workload did', () => {
  it('has the amounts that the program says', () => {
    assert.equal(costOfFunction(reported, 'allocations', (name) => plain(name) === 'keep_cache'), 1000);
    assert.equal(costOfFunction(reported, 'live_bytes', (name) => plain(name) === 'leak_receipt'), 50_000);
    assert.equal(costOfFunction(reported, 'temporary', (name) => plain(name) === 'churn'), 20_000);
  });
});

describe('summary', () => {
  it('shows each figure', async () => {
    await viewer.open('#/summary');
    for (const [cost, spell] of Object.entries(SPELLING)) {
      assert.equal(await viewer.text(`figure-${cost}`), spell(reported.totals[cost]), cost);
    }
  });

  it('lists the call sites with most of each', async () => {
    await viewer.open('#/summary');
    for (const cost of SECTIONS) {
      const shown = await viewer.page.getByTestId(`top-${cost}`).locator('li').evaluateAll((items) => items.map((item) => ({
        cost: item.querySelector('.top-cost')?.textContent,
        name: item.querySelector('.code')?.getAttribute('title')?.split('\n')[0],
      })));
      const wanted = reported.top[cost].slice(0, 5).map((site) => SPELLING[cost](site.costs[cost]));
      assert.deepEqual(shown.map((entry) => entry.cost), wanted);
      const first = reported.top[cost][0].function;
      assert.ok(first === '' || shown.some((entry) => entry.name === first), `${first} in ${JSON.stringify(shown)}`);
    }
  });

  it('splits the resident size in one bar that leads to its view', async () => {
    await viewer.open('#/summary');
    const { breakdowns: splits } = await viewer.ask('rss');
    const highest = splits.rss_bytes[splits.is_peak.indexOf(true)];
    const bar = viewer.page.getByTestId('rss-bar');
    assert.match(await bar.innerText(), new RegExp(`: ${humanBytes(highest)}(, the peak|; the peak was )`));
    const parts = await bar.locator('.rss-legend > span').evaluateAll((spans) => spans.map((span) => Number(span.title.replace(/[^\d]/g, ''))));
    assert.equal(parts.reduce((sum, bytes) => sum + bytes, 0), highest);
    await bar.click();
    await viewer.idle();
    assert.equal(await viewer.page.locator('main').getAttribute('data-view'), 'rss');
  });

  it('lists the events that the program reported, and who did', async () => {
    await viewer.open('#/summary');
    assert.deepEqual(reported.adhoc.entries.map((event) => [event.name, event.events, event.weight]), [['[event receipts]', 50, 50_000]]);
    const cells = await viewer.page.getByTestId('events').locator('tbody td').evaluateAll((items) => items.map((item) => [
      item.querySelector('.code')?.getAttribute('title')?.split('\n')[0] ?? item.textContent, item.title]));
    assert.deepEqual(cells.slice(0, 3).map(([text]) => text), [humanCount(50_000), humanCount(50), '[event receipts]']);
    assert.equal(cells[0][1].replace(/[^\d]/g, ''), '50000');
    assert.equal(plain(cells[3][0]), 'leak_receipt');
  });

  it('says what ran', async () => {
    await viewer.open('#/summary');
    const facts = await viewer.page.locator('.facts').innerText();
    assert.ok(facts.includes(reported.run.command_line), facts);
    assert.ok(facts.includes(reported.run.host), facts);
    assert.ok(facts.includes('exit status 0'), facts);
  });
});

describe('trees', () => {
  it('bottom-up: a function that allocates by itself has the cost of its stacks', async () => {
    await viewer.open('#/bottom-up?cost=temporary&wrappers=1');
    const rows = await viewer.rows('Bottom-up tree');
    const sums = new Map();
    for (const site of reported.top.allocations) {
      for (const stack of site.stacks) {
        const name = stack.frames[0].function;
        sums.set(name, (sums.get(name) ?? 0) + stack.costs.peak_bytes);
      }
    }
    let compared = 0;
    for (const row of rows.filter((candidate) => sums.has(candidate.name))) {
      assert.equal(exactNumber(row.costs[0]), sums.get(row.name), row.name);
      compared++;
    }
    assert.ok(compared >= 3, `only ${compared} of ${JSON.stringify([...sums.keys()])}`);
  });

  it('top-down: the first level makes up the whole', async () => {
    await viewer.open('#/top-down');
    const rows = await viewer.firstLevel('Top-down tree');
    const sum = rows.reduce((total, row) => total + exactNumber(row.costs[0]), 0);
    assert.equal(sum, reported.totals.peak_bytes);
  });

  it('the stacks behind a row are shown whole', async () => {
    await viewer.open('#/bottom-up?cost=temporary&function=churn');
    const table = await viewer.table('Bottom-up tree');
    await table.press('ArrowDown');
    await viewer.idle();
    const panel = await viewer.page.locator('.stack').innerText();
    assert.match(panel, /1 of 1/);
    assert.match(panel, /churn/);
    assert.match(panel, /workload\.cpp:\d+/);
    assert.ok(panel.includes(humanCount(20_000)), panel);
  });
});

describe('flame graph', () => {
  for (const cost of someOf(['peak_bytes', 'live_bytes', 'allocations', 'temporary'], 2)) {
    it(`is as wide as all ${cost}`, async () => {
      await viewer.open(`#/flame?cost=${cost}&min_share=0`);
      const status = await viewer.text('flame-status');
      assert.ok(status.startsWith(`all: ${SPELLING[cost](reported.totals[cost])}, 100%`), status);
    });
  }

  it('says what its colours mean', async () => {
    await viewer.open('#/flame?min_share=0');
    const modules = await viewer.page.getByLabel('Colours').getByRole('listitem').allInnerTexts();
    assert.equal(modules[0], 'workload');
    assert.ok(modules.some((name) => name.startsWith('libc.so')), modules.join('; '));
  });

  it('says what a click does, and of a frame its module', async () => {
    await viewer.open('#/flame?min_share=0');
    assert.match(await viewer.text('flame-status'), /100% Click: zoom in\..* Right click: more\.$/);
    await viewer.page.getByRole('application').press('ArrowDown');
    await viewer.page.getByRole('application').press('ArrowDown');
    assert.match(await viewer.text('flame-status'), /% (\S+:\d+ )?\/\S+$/);
  });

  it('a search says its share', async () => {
    await viewer.open('#/flame?cost=live_bytes&search=leak_receipt');
    const match = await viewer.text('flame-match');
    assert.ok(match.includes(humanBytes(50_000)), match);
    assert.ok(match.includes(`of ${humanBytes(reported.totals.live_bytes)}`), match);
  });
});

describe('caller and callee', () => {
  it('inclusive costs count a stack once, also through recursion', async () => {
    for (const name of ['fibonacci(int)', 'keep_cache()', 'churn(int)']) {
      await viewer.open(`#/functions?cost=allocations&function=${encodeURIComponent(name)}`);
      const rows = await viewer.rows('Functions');
      const row = rows.find((candidate) => candidate.name === name);
      assert.ok(row !== undefined, `${name} in ${JSON.stringify(rows.map((r) => r.name))}`);
      assert.equal(exactNumber(row.costs[2]), costOfFunction(reported, 'allocations', (candidate) => candidate === name), name);
    }
  });

  it('a function has its callers, callees and lines', async () => {
    await viewer.open('#/functions?cost=allocations&fn=keep_cache()');
    const callers = await viewer.rows('Callers');
    assert.deepEqual(callers.map((row) => plain(row.name)), ['main']);
    assert.equal(exactNumber(callers[0].costs[0]), costOfFunction(reported, 'allocations', (name) => name === 'keep_cache()'));
    const lines = await viewer.rows('Source lines');
    const cut = await viewer.page.locator('.neighbours .code-name').evaluateAll((all) => all.filter((name) => name.scrollWidth > name.clientWidth).map((name) => name.textContent));
    assert.deepEqual(cut, []);
    assert.ok(lines.length >= 1 && lines.every((row) => /workload\.cpp:\d+/.test(row.cells[0])), JSON.stringify(lines));
  });
});

describe('leaks', () => {
  it('are those of the report', async () => {
    await viewer.open('#/leaks?leaks_by=call_site');
    const rows = await viewer.rows('Leaks');
    assert.deepEqual(rows.map((row) => exactNumber(row.costs[0])), reported.top.live_bytes.map((site) => site.costs.live_bytes));
    assert.match(await viewer.text('leaks-count'), new RegExp(`^${rows.length} call sites?$`));
  });

  it('have kinds of growth that say what they are', async () => {
    await viewer.open('#/leaks?leaks_by=stack');
    assert.match(await viewer.text('leaks-count'), /^\d+ stacks?$/);
    const helps = await viewer.page.getByRole('group', { name: 'Growth' }).getByRole('button').evaluateAll((all) => all.map((button) => button.title));
    assert.equal(new Set(helps).size, helps.length, helps.join('; '));
  });
});

describe('suppressed leaks', () => {
  itAtNight('are not in the table, and the rule says what it took out', async () => {
    const forgiven = recordSource(stage.folder, 'forgiven.cpp');
    const rules = path.join(stage.folder, 'forgiven.txt');
    fs.writeFileSync(rules, 'leak:forgotten\n');
    const other = await serve(forgiven, ['--suppressions', rules]);
    const page = await stage.newPage();
    const own = new Viewer(page, other.url);
    await own.open('#/leaks');
    const rows = await own.rows('Leaks');
    assert.deepEqual(rows.filter((row) => /^(lost|forgotten)/.test(row.name)).map((row) => [plain(row.name), exactNumber(row.costs[0])]), [['lost', 1000]]);
    await page.locator('.leaks-suppressions summary').click();
    const cells = await page.locator('.leaks-suppressions tbody tr').filter({ hasText: 'forgotten' }).locator('td').allInnerTexts();
    assert.deepEqual(cells.slice(1), ['1', humanBytes(1000), '10']);
    const of = report(forgiven, ['--suppressions', rules]);
    assert.match(await page.locator('.leaks-suppressions summary').innerText(), new RegExp(`^Suppressed: ${humanBytes(of.selection.suppressed.live_bytes)} in `));
    await own.open('#/summary');
    assert.equal(await own.text('figure-live_bytes'), humanBytes(of.totals.live_bytes));
    assert.ok((await page.locator('.figures').innerText()).includes(`${humanBytes(of.selection.suppressed.live_bytes)} more is suppressed`));
    await own.open('#/charts');
    assert.ok((await own.text('suppressed-note')).startsWith(`Includes ${humanBytes(of.selection.suppressed.live_bytes)} of suppressed leaks`));
    const series = await own.ask('series');
    assert.equal(series.points.live_bytes.at(-1), of.totals.live_bytes + of.selection.suppressed.live_bytes);
    await page.close();
    await other.stop();
    assert.deepEqual(own.complaints, []);
  });
});

describe('threads and processes', () => {
  it('are those of the report', async () => {
    await viewer.open('#/threads');
    const rows = await viewer.rows('Threads');
    const shown = rows.map((row) => [Number(row.cells[1]), exactNumber(row.costs[2])]);
    const wanted = reported.threads.map((thread) => [thread.thread_id, thread.costs.allocations]);
    assert.deepEqual(shown.sort((a, b) => a[0] - b[0]), wanted.sort((a, b) => a[0] - b[0]));
    const processes = await viewer.rows('Processes');
    assert.deepEqual(processes.map((row) => Number(row.cells[1])), reported.processes.map((process) => process.pid));
  });
});

describe('sizes', () => {
  it('the bars are all allocations, and one of them holds the receipts', async () => {
    await viewer.open('#/sizes?function=leak_receipt');
    const titles = await viewer.page.getByTestId('bars').locator('g > title').allTextContents();
    const counts = titles.map((title) => Number(/: ([\d,]+) blocks/.exec(title)?.[1]?.replaceAll(',', '')));
    assert.equal(counts.reduce((sum, count) => sum + count, 0), 50);
  });
});

describe('over time', () => {
  it('the chart says the peak', async () => {
    await viewer.open('#/charts');
    const label = await viewer.page.getByTestId('chart').getAttribute('aria-label');
    assert.ok(label.includes(humanBytes(reported.totals.peak_bytes)), label);
    assert.ok(await viewer.page.locator('.chart canvas').isVisible());
  });
});

describe('the RSS breakdown', () => {
  const legend = async () => (await viewer.page.getByTestId('breakdown-legend').locator('dl > div').evaluateAll(
    (rows) => rows.map((row) => [row.querySelector('dt').textContent.trim(), row.querySelector('dd').firstChild.textContent.trim()]),
  ));
  const wanted = ({ kinds, breakdowns: splits }, row) => [
    ['RSS', humanBytes(splits.rss_bytes[row])],
    ...kinds.key.map((key, index) => [kinds.phrase[index], humanBytes(splits[`${key}_bytes`][row])]),
  ];
  const shareOfKind = (answer, kind) => answer.mappings.rss_bytes.reduce((sum, bytes, row) => sum + (answer.mappings.kind[row] === kind ? bytes : 0), 0);

  /** Where the last pixels of the chart begin: of the looks in them, any may be the nearest to a pointer at the end. */
  const lastPixels = (splits) => splits.time_ms.at(-1) * 0.99;

  it('splits the resident size by what it is for, at its highest and where the pointer is', async () => {
    await viewer.open('#/rss');
    const answer = await viewer.ask('rss');
    const { breakdowns: splits } = answer;
    assert.ok(splits.count > 1, 'several looks');
    assert.deepEqual((await legend()).slice(0, 10), wanted(answer, splits.is_peak.indexOf(true)));
    const over = await viewer.page.locator('.chart .u-over').boundingBox();
    await viewer.page.mouse.move(over.x + over.width - 2, over.y + 60);
    await viewer.idle();
    const shown = (await legend()).slice(0, 10);
    const near = splits.time_ms.flatMap((ms, row) => (ms > lastPixels(splits) ? [wanted(answer, row)] : []));
    assert.ok(near.some((parts) => isDeepStrictEqual(shown, parts)), JSON.stringify([shown, near]));
  });

  it('a click shows the mappings of the nearest moment that has them, and the address keeps it', async () => {
    await viewer.open('#/rss');
    const { breakdowns: splits } = await viewer.ask('rss');
    const over = await viewer.page.locator('.chart .u-over').boundingBox();
    await viewer.page.mouse.click(over.x + over.width - 2, over.y + 60);
    await viewer.idle();
    const moment = viewer.parameters().get('moment');
    const row = splits.time_ms.indexOf(Number(moment));
    assert.ok(splits.has_mappings[row] && splits.time_ms[row] > lastPixels(splits), `${moment} of ${JSON.stringify(splits)}`);
    const then = await viewer.ask(`rss?moment_ms=${moment}`);
    assert.equal(shareOfKind(then, 'file'), splits.file_bytes[row]);
    assert.ok((await viewer.page.locator('main').innerText()).includes('Mappings after'));
    const table = await viewer.rows('Mappings');
    const highestFirst = [...then.mappings.rss_bytes].sort((a, b) => b - a).map(humanBytes);
    assert.deepEqual(table.map(({ cells }) => cells[4]), highestFirst.slice(0, table.length));
    await viewer.page.reload();
    await viewer.idle();
    assert.deepEqual(await viewer.rows('Mappings'), table);
  });

  it('shows the samples by kind of page as well', async () => {
    await viewer.open('#/rss');
    await viewer.page.getByRole('button', { name: 'Kind of page' }).click();
    await viewer.idle();
    const { samples } = await viewer.ask('rss');
    const highest = Math.max(...samples.rss_bytes);
    assert.ok((await viewer.page.locator('.breakdown-legend').innerText()).includes(humanBytes(highest)));
    assert.equal(viewer.parameters().get('rss_by'), 'samples');
  });
});

describe('filters', () => {
  const CASES = [
    { fragment: 'function_regex=churn', args: ['--filter-function', 'churn'] },
    { fragment: 'function_regex=%5Ekeep_cache', args: ['--filter-function', '^keep_cache'] },
    { fragment: 'thread=helper', args: ['--thread', 'helper'] },
    { fragment: 'module_regex=workload', args: ['--module', 'workload'] },
    { fragment: 'show_from=^main%24&ignore=no_such', args: ['--show-from', '^main$', '--ignore', 'no_such'] },
    { fragment: 'thread=helper&module_regex=workload', args: ['--thread', 'helper', '--module', 'workload'] },
    { fragment: 'size_min_bytes=2000&size_max_bytes=4096', args: ['--size', '2000..4096'] },
    { fragment: 'size_max_bytes=64&thread=helper', args: ['--size', '..64', '--thread', 'helper'] },
    { fragment: 'lifetime_max_ms=1', args: ['--lifetime', '..1ms'] },
    { fragment: 'lifetime_min_ms=2&size_min_bytes=1000', args: ['--lifetime', '2ms..', '--size', '1000..'] },
    { fragment: 'function_regex=no_such_function', args: ['--filter-function', 'no_such_function'] },
  ];
  for (const { fragment, args } of someOf(CASES, 5)) {
    it(`${args.join(' ')}: the summary is that of the report`, async () => {
      const filtered = report(file, args);
      await viewer.open(`#/summary?${fragment}`);
      for (const [cost, spell] of Object.entries(SPELLING)) {
        const isKnown = !filtered.selection.unavailable.includes(cost);
        assert.equal(await viewer.text(`figure-${cost}`), isKnown ? spell(filtered.totals[cost]) : 'unknown', cost);
      }
      const share = await viewer.text('filter-share');
      const isKnown = !filtered.selection.unavailable.includes('peak_bytes');
      assert.ok(share.includes(isKnown ? humanBytes(filtered.totals.peak_bytes) : 'not known under this filter'), share);
    });
  }

  it('hold in the flame graph and the tree as well', async () => {
    const filtered = report(file, ['--filter-function', 'churn']);
    await viewer.open('#/flame?function_regex=churn&cost=allocations');
    assert.match(await viewer.text('flame-status'), new RegExp(`^all: ${humanCount(filtered.totals.allocations)},`));
    await viewer.open('#/top-down?function_regex=churn&cost=allocations');
    const rows = await viewer.firstLevel('Top-down tree');
    assert.equal(rows.reduce((sum, row) => sum + exactNumber(row.costs[2]), 0), filtered.totals.allocations);
  });

  it('a wrong regular expression is reported, not shown as nothing', async () => {
    const page = await stage.newPage();
    const other = new Viewer(page, server.url);
    await other.open('#/summary?function_regex=%28');
    assert.match(await page.locator('.filter-bad').innerText(), /is not a regular expression/);
    await page.close();
  });
});
