// SPDX-License-Identifier: MIT
// Recordings that are not as usual: without any allocation, cut short, and larger than a page shows.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  DEADLINE_MS, exactNumber, humanBytes, humanCount, importHeaptrack, importMassif, readSvg, recordCut, recordEmpty, recordSource, recordUnseen, recordWorkload, report, serve, withStage,
} from './support.mjs';

const VIEWS = ['summary', 'peak', 'bottom-up', 'functions', 'top-down', 'flame', 'charts', 'sizes', 'sizes?histogram=lifetimes', 'sizes?histogram=size_lifetime', 'leaks', 'threads', 'rss', 'source'];

const stage = withStage(() => undefined);

/** Serves what `make` records, for the tests of one `describe`. */
function served(make) {
  const own = {};
  before(async () => {
    own.file = make(stage.folder);
    own.server = await serve(own.file);
    own.viewer = await stage.view(own.server);
  });
  after(async () => {
    await own.viewer?.page.close();
    await own.server?.stop();
    assert.deepEqual(own.viewer?.complaints, []);
  });
  return own;
}

function everyViewOpens(own) {
  for (const view of VIEWS) {
    it(`opens ${view} without an error`, async () => {
      await own.viewer.follow(`#/${view}`);
      assert.equal(await own.viewer.page.locator('main .notice-bad').filter({ hasNotText: 'Incomplete file' }).count(), 0);
      assert.ok((await own.viewer.page.locator('main').innerText()).trim().length > 0, 'the view says something');
    });
  }
}

describe('a recording that does not show everything', () => {
  const own = served(recordUnseen);

  it('says in a line each what is missing, as the report names it', async () => {
    const { unrecorded, unseen } = report(own.file);
    assert.deepEqual([unrecorded.execs, unseen.length], [1, 1]);
    await own.viewer.open('#/summary');
    const missing = await own.viewer.text('unrecorded');
    assert.ok(missing.startsWith('1 executed program is not recorded: '), missing);
    assert.ok(missing.includes(`${unrecorded.programs[0].program} (${unrecorded.programs[0].text})`), missing);
    const blind = await own.viewer.text('unseen');
    assert.ok(blind.includes(`${unseen[0].executable}, pid ${unseen[0].pid}`), blind);
  });
});

describe('an empty recording', () => {
  const own = served(recordEmpty);
  everyViewOpens(own);

  it('says so, and why that may be', async () => {
    assert.equal(report(own.file).totals.allocations, 0);
    await own.viewer.open('#/summary');
    assert.match(await own.viewer.page.locator('.notice').innerText(), /asked for no memory while it was recorded/);
    assert.equal(await own.viewer.text('figure-allocations'), '0');
    assert.doesNotMatch(await own.viewer.page.locator('main').innerText(), /NaN|Infinity|undefined|- of/);
  });

  it('does not blame a filter that is not there', async () => {
    await own.viewer.open('#/top-down');
    assert.match(await own.viewer.page.locator('.table-empty').innerText(), /Nothing of the kind was recorded/);
    await own.viewer.open('#/top-down?function=x');
    assert.match(await own.viewer.page.locator('.table-empty').innerText(), /Nothing passes the filter/);
  });
});

describe('a recording that was cut short', () => {
  const own = served(recordCut);
  everyViewOpens(own);

  it('says what it lacks, in every view', async () => {
    const reported = report(own.file);
    assert.ok(reported.damage !== null);
    await own.viewer.open('#/flame');
    await own.viewer.page.getByRole('button', { name: 'incomplete file' }).click();
    await own.viewer.idle();
    assert.ok((await own.viewer.page.locator('.notice-bad').innerText()).includes(reported.damage), reported.damage);
    assert.equal(await own.viewer.text('figure-allocations'), humanCount(reported.totals.allocations));
    assert.equal(await own.viewer.text('figure-peak_bytes'), humanBytes(reported.totals.peak_bytes));
    assert.ok(reported.totals.allocations > 0, 'something is left');
  });
});

describe('a file of massif, which knows neither how often nor how long', () => {
  const own = served(importMassif);
  everyViewOpens(own);

  it('shows what it knows, and never a figure for what it does not', async () => {
    const reported = report(own.file);
    assert.ok(reported.run.unknown.includes('allocations'), reported.run.unknown.join());
    await own.viewer.open('#/summary');
    for (const cost of ['allocations', 'temporary', 'allocated_bytes']) {
      assert.equal(await own.viewer.text(`figure-${cost}`), 'unknown', cost);
      assert.equal(await own.viewer.page.getByTestId(`top-${cost}`).count(), 0, cost);
    }
    for (const cost of ['peak_bytes', 'live_bytes']) {
      assert.equal(await own.viewer.text(`figure-${cost}`), humanBytes(reported.totals[cost]));
    }
    assert.doesNotMatch(await own.viewer.page.locator('main').innerText(), /NaN|Infinity|undefined/);
  });

  it('has no columns, charts and choices for it', async () => {
    await own.viewer.open('#/functions?cost=allocations');
    const heads = await own.viewer.page.getByLabel('Functions', { exact: true }).getByRole('columnheader').allInnerTexts();
    assert.deepEqual(heads.map((head) => head.replace(' ▾', '')), ['Function', 'Peak', 'Leaked']);
    assert.equal(own.viewer.parameters().get('cost'), null); // the peak, since that is known
    await own.viewer.open('#/flame');
    const choices = await own.viewer.page.getByLabel('Cost').locator('option').allInnerTexts();
    assert.deepEqual(choices, ['Peak', 'Leaked']);
    await own.viewer.open('#/leaks');
    assert.ok(!(await own.viewer.page.locator('main').innerText()).includes('Leaked blocks'));
  });
});

describe('names that differ in one argument of a template', () => {
  const own = served((where) => recordSource(where, 'instances.cpp'));

  for (const width of [390, 720, 1440]) {
    it(`show the argument at ${width} px`, async () => {
      await own.viewer.page.setViewportSize({ width, height: 844 });
      await own.viewer.open('#/leaks?leaks_by=call_site');
      const parts = await own.viewer.page.locator('.code-own').evaluateAll((list) =>
        list.map((part) => ({ text: part.textContent, room: part.clientWidth, needed: part.scrollWidth, end: part.getBoundingClientRect().right, cell: part.closest('[role=gridcell], td, .table-cell, .code')?.getBoundingClientRect().right })));
      assert.ok(parts.length >= 10, String(parts.length));
      assert.equal(new Set(parts.map((part) => part.text)).size, parts.length);
      assert.deepEqual(parts.filter((part) => part.needed > part.room || part.end > part.cell + 1), []);
    });
  }
});

describe('lines of one function', () => {
  const own = served((where) => recordSource(where, 'instances.cpp'));

  for (const view of ['leaks', 'peak']) {
    it(`are told apart in ${view} at 390 px`, async () => {
      await own.viewer.page.setViewportSize({ width: 390, height: 844 });
      await own.viewer.open(`#/${view}`);
      const lines = await own.viewer.page.locator('.table-body [role=row] .code[title*=remember_on_two_lines] .place > :last-child').evaluateAll((list) =>
        list.map((part) => ({ text: part.textContent, isWhole: part.getBoundingClientRect().width > 8 && part.getBoundingClientRect().right <= part.closest('.table-cell').getBoundingClientRect().right })));
      assert.equal(new Set(lines.map((line) => line.text)).size, 2, JSON.stringify(lines));
      assert.deepEqual(lines.filter((line) => !line.isWhole || !/^:\d+$/.test(line.text)), []);
    });
  }
});

describe('a recording that is larger than a page', () => {
  const own = served((where) => recordSource(where, 'many.cpp'));
  everyViewOpens(own);

  it('has 96000 stacks, and the summary counts them all', async () => {
    const totals = (await own.viewer.ask('summary')).totals;
    assert.equal(totals.allocations, 96_000);
    await own.viewer.open('#/summary');
    assert.equal(await own.viewer.text('figure-allocations'), '96,000');
    assert.equal(await own.viewer.text('figure-live_bytes'), humanBytes(1_536_000));
  });

  it('lists the highest functions, says how many there are, and a filter brings the others', async () => {
    await own.viewer.open('#/functions?cost=allocations');
    assert.match(await own.viewer.page.locator('.functions-count').innerText(), /Top 1,000 of 1,50\d functions; filter to see others/);
    await own.viewer.open('#/functions?cost=allocations&by_self=1&function=leaf%3C1499%3E');
    const row = (await own.viewer.rows('Functions')).find((candidate) => candidate.name === 'void leaf<1499>()');
    assert.equal(exactNumber(row.costs[2]), 64);
  });

  for (const [view, label] of [['functions?by_self=1&', 'Functions'], ['bottom-up?', 'Bottom-up tree']]) {
    it(`${view.split('?')[0]}: rows for instances of one template are told apart`, async () => {
      await own.viewer.open(`#/${view}cost=allocations`);
      const shown = (await own.viewer.rows(label)).map((row) => row.cells[0]).filter((text) => text.includes('leaf'));
      assert.ok(shown.length > 10, String(shown.length));
      assert.equal(new Set(shown).size, shown.length, shown.slice(0, 5).join('; '));
    });
  }

  it('the flame graph shows the widest frames, and everything if asked to', async () => {
    await own.viewer.open('#/flame');
    const count = async () => /^(?:widest ([\d,]+) of )?([\d,]+) frames$/.exec(await own.viewer.text('flame-count')).slice(1).map((text) => Number((text ?? '').replaceAll(',', '')));
    const [few, all] = await count();
    assert.ok(few > 0 && few < all, `${few} of ${all}`);
    await own.viewer.open('#/flame?min_share=0&collapse=0');
    const [shown, total] = await count();
    assert.equal(shown, 0); // all of them
    assert.ok(total > 96_000, String(total));
    assert.match(await own.viewer.text('flame-status'), new RegExp(`^all: ${humanBytes(1_536_000)}, 100%`));
  });

  it('a bottom-up tree of 1500 rows has few of them in the document, and the last can be reached', async () => {
    await own.viewer.open('#/bottom-up?cost=allocations');
    const table = await own.viewer.table('Bottom-up tree');
    assert.equal(await table.getAttribute('aria-rowcount'), '1501');
    assert.ok((await own.viewer.rows('Bottom-up tree')).length < 120);
    await table.press('End');
    await own.viewer.page.locator('.table-selected[aria-rowindex="1501"]').waitFor();
    const rows = await own.viewer.rows('Bottom-up tree');
    assert.match(rows.at(-1).name, /^void leaf<\d+>\(\)$/);
  });

  it('names that go on for thousands of characters are cut to fit', async () => {
    await own.viewer.open('#/top-down?cost=allocations');
    const table = await own.viewer.table('Top-down tree');
    await table.press('ArrowDown');
    await table.press('h');
    await own.viewer.idle();
    const overflow = await own.viewer.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(overflow, 0);
  });
});

describe('a file of heaptrack, which knows how much was resident and not what', () => {
  const own = served(importHeaptrack);
  everyViewOpens(own);

  it('shows RSS, and never 0 for what it does not know', async () => {
    const rss = 2560 * 4096;
    await own.viewer.open('#/summary');
    const bar = await own.viewer.text('rss-bar');
    assert.ok(bar.includes(humanBytes(rss)) && bar.includes('unknown'), bar);
    assert.equal(await own.viewer.page.locator('.rss-parts').count(), 0);
    await own.viewer.open('#/rss');
    const legend = await own.viewer.page.getByLabel('At the moment pointed at').innerText();
    assert.ok(legend.includes(humanBytes(rss)) && !/Anonymous:|Files|Swapped|faults|\b0 B/.test(legend), legend);
    const svg = readSvg((await own.viewer.download(own.viewer.page.getByRole('button', { name: 'SVG', exact: true }))).bytes);
    assert.ok(svg.words.includes('RSS') && !svg.words.some((word) => word.startsWith('Files')), svg.words.join('; '));
  });

  it('says of a single block that it is one, and that nothing grows', async () => {
    await own.viewer.open('#/leaks');
    const [once, ...others] = (await own.viewer.rows('Leaks')).filter((row) => exactNumber(row.costs[1]) === 1);
    assert.deepEqual(others, []);
    assert.match(once.cells[4], /^Once/);
    assert.equal(once.cells[5], '');
  });

  it('counts one thread as one', async () => {
    await own.viewer.open('#/summary');
    assert.match(await own.viewer.page.locator('.facts').innerText(), /1 with 1 thread\n/);
    assert.match(await own.viewer.page.locator('.figure').last().getAttribute('title'), /^highest resident size/);
  });
});

/** Waits until the server has seen what became of the file; the page itself asks nothing by that. */
async function untilServed(viewer, passes) {
  for (const deadline = Date.now() + DEADLINE_MS; !passes(await viewer.ask('meta'));) {
    assert.ok(Date.now() < deadline, 'the server does not see the new file');
  }
}

describe('a file that is replaced while it is looked at', () => {
  it('is shown anew in every part of the page, and the page says so', async () => {
    const file = path.join(stage.folder, 'served.cairn');
    const other = recordEmpty(stage.folder);
    fs.copyFileSync(recordWorkload(stage.folder, 'first.cairn'), file);
    const server = await serve(file);
    const viewer = await stage.view(server);
    await viewer.open('#/summary');
    assert.match(await viewer.page.locator('header').innerText(), /\/workload/);
    fs.copyFileSync(other, `${file}.new`);
    fs.renameSync(`${file}.new`, file);
    await untilServed(viewer, (meta) => meta.run.program.endsWith('empty'));
    assert.equal(await viewer.page.locator('.notice-bad').count(), 0); // an answer comes when something is asked
    await viewer.page.getByTestId('tab-top-down').click();
    await viewer.page.locator('.notice-bad').waitFor();
    await viewer.idle();
    assert.match(await viewer.page.locator('.notice-bad').innerText(), /replaced at .*: this page now shows another recording/);
    assert.match(await viewer.page.locator('header').innerText(), /\/empty/);
    assert.match(await viewer.page.locator('.table-empty').innerText(), /Nothing of the kind was recorded/);
    await viewer.page.getByRole('button', { name: 'Dismiss' }).click();
    assert.equal(await viewer.page.locator('.notice-bad').count(), 0);
    await viewer.page.close();
    await server.stop();
    assert.deepEqual(viewer.complaints, []);
  });
});

describe('a fragmented heap', () => {
  const own = served((folder) => recordSource(folder, '../programs/resident/survivors.c'));

  it('names whose blocks keep almost empty pages resident, with the figures of the report', async () => {
    const { rss, findings } = report(own.file);
    // A slow run may have its highest breakdown before the program frees anything.
    const last = rss.breakdowns.find((breakdown) => breakdown.is_last);
    const sites = rss.survivors.filter((survivor) => survivor.time_ms === last.time_ms);
    assert.ok(sites.some((site) => site.function === 'keep_session') && sites.some((site) => site.function === 'keep_message'));
    await own.viewer.follow(`#/rss?moment=${last.time_ms}`);
    const text = await own.viewer.text('survivors');
    for (const shown of [humanBytes(last.sparse_page_bytes), humanBytes(last.empty_page_bytes), ...sites.slice(0, 2).flatMap((site) => [site.function, humanBytes(site.held_bytes)])]) {
      assert.ok(text.includes(shown), `${shown} in ${text}`);
    }
    await own.viewer.follow('#/summary');
    assert.ok((await own.viewer.text('finding-sparse')).includes(findings.items.find((item) => item.kind === 'sparse').sentence));
  });
});
