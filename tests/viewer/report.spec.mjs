// SPDX-License-Identifier: MIT
// `cairn export --html`: one file, opened from disk without a server and without a network. It shows what the server's page
// shows and what `cairn report --json` says, runs nothing that a recording holds, and says what it cannot show.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { exactNumber, exportHtml, humanBytes, humanCount, itAtNight, recordFamily, recordHostile, recordNothing, recordWorkload, report, shownName, someOf, Viewer, withStage } from './support.mjs';

const MAX_BYTES = 33 << 20;

let file, reported, served, viewer, requests;
function exportPage(recording, name, args = []) {
  const page = exportHtml(recording, path.join(stage.folder, name), args);
  assert.ok(fs.statSync(page).size < MAX_BYTES);
  return page;
}

/** A page from disk, in a browser that may reach nothing else; every request is remembered. */
async function openPage(page) {
  const tab = await stage.newPage();
  requests = [];
  tab.on('request', (request) => requests.push(request.url()));
  await tab.route(/^(?!file:|data:|blob:)/, (route) => route.abort());
  return new Viewer(tab, pathToFileURL(page).href);
}

const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
  reported = report(file);
  ({ viewer: served } = await stage.open(file));
  viewer = await openPage(exportPage(file, 'report.html'));
});

/** What a view shows, without what only a server can do. */
function shownBy(page) {
  return page.page.evaluate(() => {
    const main = document.querySelector('main').cloneNode(true);
    main.querySelectorAll('.toolbar, .charts-hint, .stack, .time').forEach((element) => element.remove());
    return [...main.querySelectorAll('*')].filter((e) => e.children.length === 0).map((e) => `${e.textContent}|${e.getAttribute('title') ?? ''}`);
  });
}

/** What a page shows at each of the addresses. */
async function shownAt(page, fragments) {
  const shown = [];
  for (const fragment of fragments) {
    await page.follow(fragment);
    shown.push(await shownBy(page));
  }
  return shown;
}

const COSTS = ['live_bytes', 'allocations', 'own_peak_bytes'];
const helper = () => report(file, ['--thread', 'helper']);
const helperId = () => report(file).threads.find((thread) => thread.name === 'helper').thread_id;

const FRAGMENTS = someOf([
  'summary', 'peak', 'top-down', 'bottom-up', 'bottom-up?wrappers=1', 'functions', 'threads', 'rss', 'sizes',
  'sizes?histogram=lifetimes', 'sizes?rank=bytes', 'sizes?histogram=size_lifetime', 'leaks', 'leaks?leaks_by=call_site', 'leaks?growth=growing', 'leaks?growth=late',
  ...COSTS.flatMap((cost) => [`bottom-up?cost=${cost}`, `functions?cost=${cost}`, `functions?by_self=1&cost=${cost}`, `flame?cost=${cost}`]),
  ...['', '1'].flatMap((wrappers) => ['0', '0.01'].map((share) => `flame?direction=bottom_up&wrappers=${wrappers}&min_share=${share}`)),
  'flame?search=a', 'flame?search=void', 'flame?search=void*', 'flame?search=%3Cvoid', 'flame?search=nothing-has-this', 'flame?search=workload&wrappers=1&cost=allocations',
  'charts', 'charts?top=0', 'charts?chart=allocations&by=stack&top=50', 'charts?chart=rate&top=5', 'charts?chart=temporary&by=stack&top=5', 'charts?chart=allocated_bytes',
], 9);

describe('a report file', () => {
  itAtNight('opens Source at the costliest line, as the server does', async () => {
    const lines = [];
    for (const one of [viewer, served]) {
      await one.open('#/source?cost=allocations');
      lines.push(await one.page.locator('.source-file .table-selected .source-line').innerText());
    }
    assert.equal(lines[0], lines[1]);
  });

  it('shows what the server shows, in every view', async () => {
    const shown = [];
    for (const page of [viewer, served]) {
      // As tall as the longest table: the two pages do not leave it the same height.
      await page.page.setViewportSize({ width: 1280, height: 2400 });
      await page.open('#/source');
      shown.push(await shownAt(page, FRAGMENTS.map((fragment) => `#/${fragment}`)));
    }
    FRAGMENTS.forEach((fragment, i) => {
      assert.ok(shown[0][i].length > 1, fragment);
      assert.deepEqual(shown[0][i], shown[1][i], fragment);
    });
    assert.deepEqual(viewer.complaints, []);
  });

  it('has the figures of cairn report', async () => {
    await viewer.open('#/summary');
    const spelled = { peak_bytes: humanBytes, live_bytes: humanBytes, allocations: humanCount, temporary: humanCount, allocated_bytes: humanBytes };
    for (const [cost, spell] of Object.entries(spelled)) {
      assert.equal(await viewer.text(`figure-${cost}`), spell(reported.totals[cost]));
    }
    await viewer.open('#/top-down');
    const sum = (await viewer.firstLevel('Top-down tree')).reduce((total, row) => total + exactNumber(row.costs[0]), 0);
    assert.equal(sum, reported.totals.peak_bytes);
  });

  itAtNight('has callers, callees and lines of every function', async () => {
    await viewer.open('#/functions');
    await served.open('#/functions');
    const functions = await served.ask('functions?limit=0');
    const { code } = functions;
    assert.ok(functions.functions.count > 10);
    const fragments = someOf(functions.functions.function, 18).map((place) => {
      const module = code.functions.module[place];
      return `#/functions?cost=allocations&${new URLSearchParams({
        fn: code.functions.name[place] || `#${code.functions.id[place]}`, fn_module: module === null ? '' : code.modules.path[module] })}`;
    });
    const shown = await shownAt(viewer, fragments);
    const wanted = await shownAt(served, fragments);
    // Lines with equal costs may change places.
    fragments.forEach((fragment, i) => assert.deepEqual(shown[i].sort(), wanted[i].sort(), fragment));
  });

  itAtNight('opens trees down to the leaves', async () => {
    for (const view of ['top-down', 'bottom-up']) {
      for (const page of [viewer, served]) {
        await page.open(`#/${view}?cost=live_bytes`);
        await page.page.getByRole('button', { name: 'Open hot path' }).click();
        await page.page.waitForFunction(() => document.querySelectorAll('.table-body [role=row][aria-level="2"]').length > 0);
        await page.idle();
      }
      assert.deepEqual(await shownBy(viewer), await shownBy(served), view);
    }
  });

  itAtNight('shows one thread by itself', async () => {
    for (const view of ['summary', 'flame', 'charts', 'threads', 'bottom-up?cost=allocations']) {
      const fragment = `#/${view}${view.includes('?') ? '&' : '?'}thread=${helperId()}`;
      await viewer.open(fragment);
      await served.open(fragment);
      assert.deepEqual(await shownBy(viewer), await shownBy(served), fragment);
    }
    await viewer.open(`#/summary?thread=${helperId()}`);
    assert.equal(await viewer.text('figure-allocations'), humanCount(helper().totals.allocations));
  });

  it('reaches nothing but itself, and its policy would not let it', async () => {
    await viewer.open('#/flame');
    assert.deepEqual([...new Set(requests.map((url) => new URL(url).protocol))].filter((protocol) => !['file:', 'data:', 'blob:', 'about:'].includes(protocol)), []);
    assert.equal(new Set(requests.filter((url) => url.startsWith('file:')).map((url) => url.split('#')[0])).size, 1);
    const said = await viewer.page.evaluate(async () => {
      const answer = await fetch('data:text/plain,x').then(() => 'fetched', () => 'refused');
      const script = document.createElement('script');
      script.textContent = 'window.hasRun = true';
      document.body.append(script);
      return { answer, hasRun: window.hasRun === true, policy: document.querySelector('meta[http-equiv]').content };
    });
    assert.deepEqual([said.answer, said.hasRun], ['refused', false]);
    assert.match(said.policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';/);
    assert.doesNotMatch(said.policy, /http|unsafe|\*/);
    viewer.complaints.length = 0; // of what was refused just now
  });

  itAtNight('unfolds single runs of wrapper frames as the server does', async () => {
    const pages = [viewer, served];
    // Rows of the same cost may be in another order.
    const rows = async (page, label) => (await page.rows(label)).map((row) => JSON.stringify(row)).sort();
    for (const [fragment, label] of [['#/bottom-up?cost=allocations', 'Bottom-up tree'], ['#/top-down?cost=allocations', 'Top-down tree']]) {
      await Promise.all(pages.map((page) => page.follow(fragment)));
      const buttons = (page) => page.page.getByLabel(/Show the .*wrapper frame/);
      assert.ok(await buttons(viewer).count() > 0, label);
      for (let round = 0; round < 3 && await buttons(viewer).count() > 0; round++) {
        for (const page of pages) {
          await buttons(page).first().click();
          await page.idle();
          assert.match(page.parameters().get('unfold'), /^\d+(,\d+)*$/);
        }
        assert.deepEqual(await rows(viewer, label), await rows(served, label), `${label}, ${round}`);
      }
      const unfolded = () => viewer.parameters().get('unfold')?.split(',').length ?? 0;
      const before = unfolded();
      await viewer.page.getByLabel(/Fold these wrapper frames/).first().click();
      await viewer.idle();
      assert.equal(unfolded(), before - 1);
    }
    for (const page of pages) {
      await page.follow('#/flame?min_share=0');
      await page.page.getByRole('application').focus();
      for (let step = 0; step < 12 && page.parameters().get('unfold') === null; step++) {
        await page.page.keyboard.press('ArrowDown');
        await page.page.keyboard.press('u');
        await page.idle();
      }
      assert.match(page.parameters().get('unfold') ?? '', /^\d+$/);
    }
    assert.equal(await viewer.text('flame-count'), await served.text('flame-count'));
  });

  itAtNight('draws no range where none can be chosen', async () => {
    const drag = async (page) => {
      await page.open('#/charts');
      const over = await page.page.locator('.chart .u-over').boundingBox();
      await page.page.mouse.move(over.x + over.width * 0.3, over.y + 60);
      await page.page.mouse.down();
      await page.page.mouse.move(over.x + over.width * 0.6, over.y + 70, { steps: 4 });
      const width = await page.page.locator('.chart .u-select').evaluate((select) => select.getBoundingClientRect().width);
      await page.page.mouse.up();
      return width;
    };
    assert.ok((await drag(served)) > 50);
    assert.equal(await drag(viewer), 0);
    assert.ok(!viewer.parameters().has('from_ms'));
  });

  it('says what it cannot show', async () => {
    await viewer.open('#/summary');
    const note = viewer.page.getByTestId('report-note');
    await note.locator('summary').click();
    assert.match(await note.innerText(), /Filters by function, file, module and time.*not in the file/s);
    assert.ok((await note.innerText()).includes('cairn analyze workload.cairn'));
    for (const fragment of someOf(['summary?function=churn', 'flame?module=libc', 'functions?from_ms=0&to_ms=5', 'top-down?diff=1',
      'summary?thread=4000000', 'flame?search=a&search_regex=1'], 2)) {
      await viewer.open(`#/${fragment}`);
      const alerts = (await viewer.page.getByRole('alert').allInnerTexts()).join(' ');
      assert.match(alerts, /cairn analyze/, fragment);
    }
    await viewer.open('#/bottom-up');
    await (await viewer.table('Bottom-up tree')).press('ArrowDown');
    await viewer.idle();
    assert.match(await viewer.page.locator('.stack').innerText(), /not in a report file/);
    assert.equal(await viewer.page.getByRole('button', { name: 'Compare with…' }).count(), 0);
  });

  it('is the same file each time', () => {
    const again = exportPage(file, 'again.html');
    assert.ok(fs.readFileSync(again).equals(fs.readFileSync(path.join(stage.folder, 'report.html'))));
  });
});

describe('a report of a sampled recording', () => {
  itAtNight('states the errors that the server states, also of what the page adds up', async () => {
    // At that interval one of 9 million samples lacks the 16,000 bytes that operator new takes, a wrapper to unfold.
    const sampled = recordWorkload(stage.folder, 'sampled.cairn', [], ['--sample=1KiB']);
    const { viewer: server } = await stage.open(sampled);
    const page = await openPage(exportPage(sampled, 'sampled.html'));
    await server.open('#/source');
    await page.open('#/source');
    const { functions, code } = await server.ask('functions?limit=0');
    const named = functions.function.slice(0, 8).map((place) => {
      const module = code.functions.module[place];
      return `functions?cost=allocations&${new URLSearchParams({ fn: code.functions.name[place] || `#${code.functions.id[place]}`, fn_module: module === null ? '' : code.modules.path[module] })}`;
    });
    const fragments = someOf(['summary', 'peak', 'sizes', 'sizes?histogram=lifetimes', 'sizes?histogram=size_lifetime', 'flame?search=a&cost=allocations',
      'flame?search=churn&cost=temporary', 'flame?search=a&wrappers=1&cost=live_bytes', ...COSTS.flatMap((cost) => [`bottom-up?cost=${cost}`, `top-down?cost=${cost}&wrappers=1`]), ...named], 7);
    const shown = await shownAt(page, fragments.map((fragment) => `#/${fragment}`));
    const wanted = await shownAt(server, fragments.map((fragment) => `#/${fragment}`));
    // Rows with equal costs may change places.
    fragments.forEach((fragment, i) => assert.deepEqual(shown[i].sort(), wanted[i].sort(), fragment));
    assert.ok(shown.filter((texts) => texts.some((text) => /±\d/.test(text))).length > fragments.length / 2);
    for (const view of ['bottom-up', 'top-down']) {
      const rows = async (viewed) => (await shownBy(viewed)).sort();
      for (const viewed of [page, server]) {
        await viewed.follow(`#/${view}?cost=allocations`);
        await viewed.page.getByLabel(/Show the .*wrapper frame/).first().click();
        await viewed.idle();
      }
      assert.deepEqual(await rows(page), await rows(server), view);
      assert.ok((await page.page.locator('[role="row"] .cost-error').allTextContents()).some((text) => /^±\d+%$/.test(text)), view);
    }
    assert.deepEqual(page.complaints, []);
  });
});

describe('a report of a part', () => {
  it('counts only what passes, and says so', async () => {
    const args = ['--filter-function', 'keep_cache'];
    const page = await openPage(exportPage(file, 'part.html', args));
    await page.open('#/summary');
    const part = report(file, args);
    assert.equal(await page.text('figure-allocations'), humanCount(part.totals.allocations));
    assert.equal(await page.text('figure-peak_bytes'), humanBytes(part.totals.peak_bytes));
    assert.match(await page.text('report-note'), /counts only: stacks through a function that matches keep_cache/);
    assert.deepEqual(page.complaints, []);
  });
});

describe('a report of several processes', () => {
  itAtNight('shows each by itself', async () => {
    const family = recordFamily(stage.folder, 'family.cairn');
    const page = await openPage(exportPage(family, 'family.html'));
    const { processes } = report(family);
    const ids = [...new Set(processes.filter((process) => process.costs.allocations > 0).map((process) => process.pid))];
    assert.ok(ids.length > 1);
    for (const pid of ids) {
      await page.open(`#/summary?process=${pid}`);
      const { totals } = report(family, ['--process', String(pid)]);
      assert.equal(await page.text('figure-allocations'), humanCount(totals.allocations));
      assert.equal(await page.text('figure-live_bytes'), humanBytes(totals.live_bytes));
      await page.open(`#/rss?process=${pid}`);
    }
    assert.deepEqual(page.complaints, []);
  });
});

describe('hostile names in a report', () => {
  it('are text in every view, and not in the file as they are', async () => {
    const { file: hostile, names } = recordHostile(stage.folder);
    const exported = exportPage(hostile, 'hostile.html');
    const page = await openPage(exported);
    for (const fragment of someOf(['summary', 'bottom-up', 'top-down', 'flame?min_share=0', 'functions', 'leaks', 'charts', 'sizes', 'threads', 'rss', 'source'], 4)) {
      await page.open(`#/${fragment}`);
      const found = await page.page.evaluate(() => ({
        strangers: document.querySelectorAll('img, iframe, object, embed, base, form[action]').length,
        scripts: [...document.scripts].filter((script) => script.type !== 'application/octet-stream').length,
        handlers: [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length,
      }));
      assert.deepEqual(found, { strangers: 0, scripts: 1, handlers: 0 }, fragment);
    }
    await page.open('#/functions');
    const rows = await page.rows('Functions');
    const text = fs.readFileSync(exported, 'utf8');
    for (const name of names) {
      assert.ok(rows.some((row) => row.name === shownName(name)), name);
      assert.ok(!/[<>"']/.test(name) || !text.includes(name), name);
    }
    assert.deepEqual(page.complaints, []);
  });
});

describe('a recording with little in it', () => {
  itAtNight('makes a page that says so', async () => {
    const nothing = path.join(stage.folder, 'nothing.cairn');
    recordNothing(nothing);
    const page = await openPage(exportPage(nothing, 'nothing.html'));
    for (const fragment of someOf(['summary', 'flame', 'charts', 'leaks', 'sizes', 'rss', 'functions'], 3)) {
      await page.open(`#/${fragment}`);
    }
    assert.deepEqual(page.complaints, []);
  });
});
