// SPDX-License-Identifier: MIT
// The filter bar: text, regular expressions, processes and threads; alone and together, in the views that follow.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exactNumber, humanBytes, humanCount, recordFamily, report, someOf, withStage } from './support.mjs';

let file, family, server, viewer, page;
const stage = withStage(async () => {
  family = recordFamily(stage.folder, 'family.cairn');
  file = `${stage.folder}/alone.cairn`;
  ({ server, viewer, page } = await stage.open(file));
});

describe('filter bar', () => {
  it('adds a filter that holds in the next view, shows it, and takes it away', async () => {
    await viewer.open('#/summary');
    await page.keyboard.press('/');
    await page.keyboard.type('keep_cache');
    await page.keyboard.press('Enter');
    await viewer.idle();
    assert.match(await page.locator('.chip').innerText(), /keep_cache/);
    const reported = report(file, ['--filter-function', 'keep_cache']);
    assert.equal(await viewer.text('figure-peak_bytes'), humanBytes(reported.totals.peak_bytes));
    await page.getByTestId('tab-top-down').click();
    await viewer.idle();
    const rows = await viewer.firstLevel('Top-down tree');
    assert.equal(rows.reduce((sum, row) => sum + exactNumber(row.costs[0]), 0), reported.totals.peak_bytes);
    await page.getByRole('button', { name: /remove filter/ }).click();
    await viewer.idle();
    assert.equal(await page.locator('.chip').count(), 0);
    assert.ok(!viewer.fragment().includes('keep_cache'));
  });

  it('takes ranges of sizes and lifetimes as the command line spells them, and says when it cannot', async () => {
    await viewer.open('#/summary');
    await page.getByLabel('What to filter by').selectOption('size');
    const input = page.getByLabel('Filter text');
    await input.fill('4KiB..1');
    assert.equal(await input.getAttribute('aria-invalid'), 'true');
    assert.ok(await page.getByRole('button', { name: 'Filter', exact: true }).isDisabled());
    await input.fill('2000..4KiB');
    await input.press('Enter');
    await viewer.idle();
    // Sizes are kept in steps of a quarter of a power of two: what passes is more than what was asked for.
    assert.deepEqual((await viewer.ask('summary?size_min_bytes=2000&size_max_bytes=4096')).selection.filter.size_bytes, { min: 1792, max: 5119 });
    assert.match(await page.locator('.chip').innerText(), /blocks of\s*1\.75 KiB to 5\.00 KiB/);
    assert.match(await page.locator('.chip').getAttribute('title'), /^asked for: 1\.95 KiB to 4\.00 KiB; /);
    const reported = report(file, ['--size', '2000..4KiB']);
    assert.equal(await viewer.text('figure-allocations'), humanCount(reported.totals.allocations));
    await page.getByTestId('tab-top-down').click();
    await viewer.idle();
    const rows = await viewer.firstLevel('Top-down tree');
    assert.equal(rows.reduce((sum, row) => sum + exactNumber(row.costs[0]), 0), reported.totals.peak_bytes);
    await page.getByTestId('tab-leaks').click();
    await viewer.idle();
    assert.equal((await viewer.rows('Leaks')).reduce((sum, row) => sum + exactNumber(row.costs[0]), 0), reported.totals.live_bytes);
    await page.getByTestId('tab-charts').click();
    await viewer.idle();
    assert.match(await page.locator('main .notice').innerText(), /^Not applied here: sizes and lifetimes \(/);
    await page.getByLabel('What to filter by').selectOption('lifetime');
    await input.fill('..1h'); // a slow machine may free nothing within a short time
    await input.press('Enter');
    await viewer.idle();
    assert.equal(await page.locator('.chip').count(), 2);
    await page.getByTestId('tab-functions').click();
    await viewer.idle();
    const lived = report(file, ['--size', '2000..4KiB', '--lifetime', '..1h']);
    const row = (await viewer.rows('Functions'))[0];
    assert.ok(row.cells.includes('unknown'), row.cells.join('; '));
    assert.ok((await viewer.ask('summary?size_min_bytes=2000&size_max_bytes=4096&lifetime_max_ms=3600000')).totals.frees === lived.totals.frees);
    await page.getByRole('button', { name: 'Reset' }).click();
    await viewer.idle();
    assert.equal(await page.locator('.chip').count(), 0);
  });

  it('a filter does not move the page', async () => {
    const top = async (fragment) => {
      await viewer.open(fragment);
      return (await page.locator('main').boundingBox()).y;
    };
    const unfiltered = await top('#/bottom-up');
    for (const filter of ['from_ms=100&to_ms=900', 'to_ms=500', 'function=keep_cache', 'size_min_bytes=4096']) {
      assert.equal(await top(`#/bottom-up?${filter}`), unfiltered, filter);
    }
  });

  it('is obeyed in a view, or the view says of what it is not: the numbers there are those without that part', async () => {
    const shown = async (fragment) => {
      await viewer.open(`#/${fragment}`);
      const notices = await page.locator('main .notice').allInnerTexts();
      // Of tables the first rows: how many there are in the page depends on its height.
      const text = await page.locator('main').evaluate((main) => [...main.querySelectorAll('.table-body [aria-rowindex="2"], .heat, .legend, .breakdown-legend')].map((e) => e.textContent).join());
      return { notices, text };
    };
    for (const [view, part, says] of someOf([
      ['sizes', 'from_ms=100', 'the time range'], ['sizes?histogram=size_lifetime', 'to_ms=100', 'the time range'],
      ['leaks', 'to_ms=100', 'the time range'], ['rss', 'function=churn', 'functions, files and modules'],
      ['rss', 'from_ms=100&size_min_bytes=9', 'the time range, sizes and lifetimes'], ['charts', 'lifetime_min_ms=1', 'sizes and lifetimes'],
    ], 3)) {
      const whole = await shown(view);
      assert.deepEqual(whole.notices, [], view);
      const filtered = await shown(`${view}${view.includes('?') ? '&' : '?'}${part}`);
      assert.ok(filtered.notices.some((notice) => notice.startsWith(`Not applied here: ${says} (`)), `${view} ${part}: ${filtered.notices.join()}`);
      assert.equal(filtered.text, whole.text, `${view} ${part}`);
    }
    for (const view of someOf(['bottom-up', 'top-down', 'functions', 'flame', 'threads'], 3)) {
      assert.deepEqual((await shown(`${view}?from_ms=100&function=keep_cache`)).notices, [], view);
    }
  });

  it('takes a thread from the table', async () => {
    await viewer.open('#/threads');
    const rows = await viewer.rows('Threads');
    const index = rows.findIndex((row) => row.cells[0].includes('helper'));
    assert.ok(index >= 0, JSON.stringify(rows));
    await page.getByLabel('Threads', { exact: true }).getByRole('button', { name: 'only' }).nth(index).click();
    await viewer.idle();
    await page.getByTestId('tab-summary').click();
    await viewer.idle();
    const reported = report(file, ['--thread', 'helper']);
    const shown = await viewer.text('figure-allocations');
    assert.equal(shown, String(reported.totals.allocations));
  });
});

describe('pickers', () => {
  it('one thread: all views show it alone', async () => {
    await viewer.open('#/summary');
    await page.getByLabel('Thread', { exact: true }).selectOption({ label: `helper (${helperId(report(file))})` });
    await viewer.idle();
    const reported = report(file, ['--thread', 'helper']);
    assert.equal(await viewer.text('figure-allocations'), humanCount(reported.totals.allocations));
    assert.match(await page.locator('.chip').innerText(), /thread/);
    await page.getByLabel('Thread', { exact: true }).selectOption('');
    await viewer.idle();
    assert.equal(await page.locator('.chip').count(), 0);
    assert.equal(await page.getByLabel('Process', { exact: true }).count(), 0, 'one process needs no picker');
  });

  it('one process of three, and a thread in it', async () => {
    const reported = report(family);
    assert.ok(reported.processes.length >= 3, JSON.stringify(reported.processes));
    const { viewer: other } = await stage.open(family);
    await other.open('#/top-down?cost=allocations');
    for (const process of reported.processes) {
      const filtered = report(family, [`--process=${process.pid}`]);
      await other.page.getByLabel('Process', { exact: true }).selectOption(String(process.pid));
      await other.idle();
      const rows = await other.firstLevel('Top-down tree');
      assert.equal(rows.reduce((sum, row) => sum + exactNumber(row.costs[2]), 0), filtered.totals.allocations, String(process.pid));
    }
    const helper = reported.threads.find((thread) => thread.name === 'helper');
    const pid = String(helper.pid);
    await other.page.getByLabel('Process', { exact: true }).selectOption(pid);
    await other.idle();
    const choices = await other.page.getByLabel('Thread', { exact: true }).locator('option').allInnerTexts();
    const own = new Set(reported.threads.filter((thread) => String(thread.pid) === pid).map((thread) => thread.thread_id)).size;
    assert.equal(choices.filter((choice) => /\(\d+\)$/.test(choice)).length, own, JSON.stringify(choices));
    await other.page.getByLabel('Thread', { exact: true }).selectOption(String(helper.thread_id));
    await other.idle();
    await other.page.getByTestId('tab-summary').click();
    await other.idle();
    const filtered = report(family, [`--process=${pid}`, `--thread=${helper.thread_id}`]);
    assert.equal(await other.text('figure-allocated_bytes'), humanBytes(filtered.totals.allocated_bytes));
    assert.equal(await other.text('figure-temporary'), humanCount(filtered.totals.temporary));
    assert.deepEqual(other.complaints, []);
    await other.page.close();
  });
});

function helperId(reported) {
  return reported.threads.find((thread) => thread.name === 'helper').thread_id;
}

describe('filters together', () => {
  it('function, module and thread hold at once; taking one away widens', async () => {
    await viewer.open('#/functions?cost=allocations');
    for (const [kind, text] of [['Function', 'helper'], ['Module', 'workload']]) {
      await page.getByLabel('What to filter by').selectOption(kind.toLowerCase());
      await page.getByLabel('Filter text').fill(text);
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await viewer.idle();
    }
    await page.getByLabel('Thread', { exact: true }).selectOption(String(helperId(report(file))));
    await viewer.idle();
    assert.equal(await page.locator('.chip').count(), 3);
    const filtered = report(file, ['--filter-function=helper', '--module=workload', '--thread=helper']);
    await page.getByTestId('tab-summary').click();
    await viewer.idle();
    assert.equal(await viewer.text('figure-allocated_bytes'), humanBytes(filtered.totals.allocated_bytes));
    assert.ok((await viewer.text('filter-share')).includes(humanCount(filtered.totals.allocations)));
    await page.getByRole('button', { name: /remove filter: thread/ }).click();
    await viewer.idle();
    const wider = report(file, ['--filter-function=helper', '--module=workload']);
    assert.equal(await viewer.text('figure-allocated_bytes'), humanBytes(wider.totals.allocated_bytes));
    await page.keyboard.press('x');
    await viewer.idle();
    assert.equal(await page.locator('.chip').count(), 0);
  });

  it('a regular expression is one only if it is said to be', async () => {
    await viewer.open('#/summary');
    await page.getByLabel('What to filter by').selectOption('function'); // it keeps the kind used last
    await page.getByLabel('Filter text').fill('^(churn|helper)');
    await page.locator('.filter').getByRole('button', { name: 'Regular expression' }).click();
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await viewer.idle();
    const filtered = report(file, ['--filter-function=^(churn|helper)']);
    assert.ok(filtered.totals.allocations > 20_000);
    assert.equal(await viewer.text('figure-allocations'), humanCount(filtered.totals.allocations));
    await viewer.open('#/summary?function=%5E(churn%7Chelper)');
    assert.equal(await viewer.text('figure-allocations'), '0');
  });
});

describe('search in the flame graph', () => {
  it('takes regular expressions', async () => {
    await viewer.open('#/flame?cost=allocations&min_share=0');
    await page.getByRole('searchbox').fill('^(churn|keep_cache)');
    await page.locator('.view').getByRole('button', { name: 'Regular expression' }).click();
    await page.waitForFunction(() => location.hash.includes('search_regex=1') && location.hash.includes('churn'));
    await viewer.idle();
    const filtered = report(file, ['--filter-function=^(churn|keep_cache)']);
    assert.ok((await viewer.text('flame-match')).includes(`: ${humanCount(filtered.totals.allocations)},`), await viewer.text('flame-match'));
  });

  it('says what is wrong with one', async () => {
    const other = await stage.view(server);
    await other.open('#/flame?search=(&search_regex=1');
    assert.match(await other.page.locator('.notice-bad').innerText(), /is not a regular expression/);
    await other.page.close();
  });
});
