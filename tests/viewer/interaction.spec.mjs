// SPDX-License-Identifier: MIT
// What a reader does: zoom, go back, reload a link, search, walk by keys, brush, follow a run.
import assert from 'node:assert/strict';
import http from 'node:http';
import { before, describe, it } from 'node:test';
import { timeOfWork } from './pace.mjs';
import { control, DEADLINE_MS, exactNumber, humanBytes, humanCount, itAtNight, pngSize, readSvg, recordFamily, recordLive, recordWorkload, report, serve, someOf, withStage } from './support.mjs';

let file, server, viewer, page;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
  ({ server, viewer, page } = await stage.open(file));
});

describe('addresses', () => {
  it('lose the token at once', async () => {
    await viewer.load('#/summary');
    assert.equal(new URL(page.url()).search, '');
  });

  it('are of one server: another one on this machine never sees the token, and a new tab has it', async () => {
    const seen = [];
    const other = http.createServer((request, response) => { seen.push(JSON.stringify([request.url, request.headers])); response.end('<p>hello'); });
    await new Promise((resolve) => { other.listen(0, '127.0.0.1', resolve); });
    const tab = await stage.newPage();
    await viewer.load('#/summary');
    await tab.goto(`http://127.0.0.1:${other.address().port}/`);
    await tab.getByText('hello').waitFor();
    await new Promise((resolve) => { other.close(resolve); other.closeAllConnections(); });
    assert.ok(seen.length > 0 && !seen.some((request) => request.includes(viewer.token)), seen.join());
    assert.deepEqual(await stage.session.cookies(), []);
    await tab.goto(new URL('/#/summary', viewer.url).href);
    await tab.getByTestId('figure-allocations').waitFor();
    await tab.close();
  });

  it('without a token lead to a page that says so', async () => {
    const other = await stage.anotherSession();
    const tab = await other.newPage();
    await tab.goto(new URL('/', viewer.url).href);
    await tab.getByText('open the address that cairn printed').waitFor();
    await other.close();
  });

  for (const view of someOf(['summary', 'peak', 'bottom-up', 'functions', 'top-down', 'flame', 'charts', 'sizes', 'leaks', 'threads', 'rss', 'source'], 12)) {
    it(`lead to ${view}, and its tab leads there too`, async () => {
      await viewer.load(`#/${view}`);
      assert.equal(await page.locator('main').getAttribute('data-view'), view);
      await viewer.follow('#/summary');
      await page.getByTestId(`tab-${view}`).click();
      await viewer.idle();
      assert.equal(await page.locator('main').getAttribute('data-view'), view);
      assert.equal(await page.locator('.notice-bad').count(), 0);
    });
  }
});

describe('flame graph', () => {
  itAtNight('is not painted again by hovering, and twice by a zoom, whatever the number of its frames', async () => {
    const own = await stage.view(server);
    await own.page.addInitScript(() => {
      const { fillText } = CanvasRenderingContext2D.prototype;
      globalThis.texts = 0;
      CanvasRenderingContext2D.prototype.fillText = function count(...args) { globalThis.texts++; return fillText.apply(this, args); };
    });
    const texts = () => own.page.evaluate(() => globalThis.texts);
    const settled = () => own.page.evaluate(() => new Promise((resolve) => {
      let left = 30;
      const next = () => (--left === 0 ? resolve(true) : requestAnimationFrame(next));
      next();
    }));
    await own.open('#/flame?min_share=0&wrappers=1');
    const box = await own.page.getByTestId('flame-box').boundingBox();
    await settled();
    const painted = await texts();
    assert.ok(painted >= 4, String(painted));
    for (let x = 10; x < box.width - 20; x += box.width / 40) {
      await own.page.mouse.move(box.x + x, box.y + 30);
    }
    await own.page.mouse.move(box.x + 40, box.y + 30);
    const outline = await own.page.getByTestId('flame-outline').boundingBox();
    assert.ok(outline.width > 20 && Math.abs(outline.y - box.y - 20) <= 2, JSON.stringify([outline, box]));
    assert.equal(await texts(), painted);
    await own.page.mouse.click(box.x + 40, box.y + 50);
    await own.idle();
    await settled();
    const zoomed = await texts();
    assert.ok(zoomed > painted && zoomed <= painted * 4, `${painted} then ${zoomed}`);
    assert.deepEqual(own.complaints, []);
    await own.page.close();
  });

  it('zooms at a click, goes back, and a reload keeps the zoom', async () => {
    await viewer.open('#/flame?min_share=0');
    const box = await page.getByTestId('flame-box').boundingBox();
    const before = await viewer.text('flame-status');
    await page.mouse.click(box.x + 40, box.y + 50);
    await viewer.idle();
    const zoom = viewer.parameters().get('zoom');
    assert.ok(zoom !== null, viewer.fragment());
    const trail = await page.getByRole('navigation', { name: 'Zoomed to' }).innerText();
    await page.reload();
    await viewer.idle();
    assert.equal(viewer.parameters().get('zoom'), zoom);
    assert.equal(await page.getByRole('navigation', { name: 'Zoomed to' }).innerText(), trail);
    await page.goBack();
    await viewer.idle();
    assert.equal(viewer.parameters().get('zoom'), null);
    assert.equal((await viewer.text('flame-status')).split(':')[0], before.split(':')[0]);
  });

  itAtNight('a link with a zoom shows the same function in another recording, where other nodes are before it', async () => {
    const trail = (on) => on.getByRole('navigation', { name: 'Zoomed to' }).innerText();
    const search = (shown) => shown.ask('tree?direction=top_down&hide_wrappers=1&collapse=1&min_share=0&search=keep_cache');
    const idOf = async (shown) => { const { nodes } = await search(shown); return nodes.id[nodes.matched.indexOf(1)]; };
    await viewer.open('#/flame?min_share=0');
    const canvas = page.locator('.flame-canvas');
    await canvas.press('ArrowDown'); // selects the root
    for (const wanted of ['main', 'keep_cache']) {
      await canvas.press('ArrowDown');
      for (let step = 0; step < 20 && !(await viewer.text('flame-status')).startsWith(wanted); step++) {
        await canvas.press('ArrowRight');
      }
      assert.ok((await viewer.text('flame-status')).startsWith(wanted), await viewer.text('flame-status'));
    }
    await canvas.press('Enter');
    await viewer.idle();
    const own = await trail(page);
    assert.match(own, /main\s*›\s*keep_cache/);
    const { viewer: other } = await stage.open(recordFamily(stage.folder, 'family.cairn'));
    await other.open(viewer.fragment());
    assert.notEqual(await idOf(other), await idOf(viewer));
    assert.equal(await trail(other.page), own);
    await other.page.close();
  });

  itAtNight('is walked by keys', async () => {
    await viewer.open('#/flame?min_share=0&cost=allocations');
    const canvas = page.locator('.flame-canvas');
    await canvas.focus();
    await canvas.press('ArrowDown');
    await canvas.press('ArrowDown');
    const status = await viewer.text('flame-status');
    assert.ok(!status.startsWith('all:'), status);
    await canvas.press('Enter');
    await viewer.idle();
    assert.ok(viewer.parameters().has('zoom'), viewer.fragment());
    await canvas.press('Escape');
    await viewer.idle();
    assert.ok(!viewer.parameters().has('zoom'), viewer.fragment());
  });

  it('searches while typing', async () => {
    await viewer.open('#/flame');
    await page.getByRole('searchbox').fill('keep_cache');
    await page.waitForFunction(() => location.hash.includes('keep_cache'));
    await viewer.idle();
    assert.match(await viewer.text('flame-match'), /frames? match/);
  });

  it('is painted', async () => {
    await viewer.open('#/flame?min_share=0');
    const colours = await page.locator('.flame-canvas').evaluate((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, 120);
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4 * 7) {
        seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      }
      return seen.size;
    });
    assert.ok(colours > 3, `${colours} colours`);
  });

  itAtNight('is exported as a picture', async () => {
    await viewer.open('#/flame');
    const { name, bytes } = await viewer.download(page.getByRole('button', { name: 'PNG' }));
    assert.equal(name, 'workload-flame.png');
    assert.equal(pngSize(bytes).width, 3200);
    assert.ok(bytes.length > 5000, `${bytes.length} bytes`);
  });
});

describe('time', () => {
  it('a drag over the chart filters every view to the range, and the address keeps it', async () => {
    await viewer.open('#/charts');
    const over = await page.locator('.chart .u-over').boundingBox();
    const { points } = await viewer.ask('series');
    const [drawn] = points.end_ms;
    const { begin: first, end: last } = timeOfWork(points);
    const placeAt = (share) => over.x + (over.width * (first + (last - first) * share - drawn)) / (last - drawn);
    await page.mouse.move(placeAt(1 / 3), over.y + 60);
    await page.mouse.down();
    await page.mouse.move(placeAt(2 / 3), over.y + 70, { steps: 4 });
    await page.mouse.up();
    await viewer.idle();
    const from = Number(viewer.parameters().get('from_ms'));
    const to = Number(viewer.parameters().get('to_ms'));
    assert.ok(from > 0 && to > from, viewer.fragment());
    await page.getByTestId('tab-flame').click();
    await page.getByLabel('Cost').selectOption('allocations');
    await viewer.idle();
    const inside = await viewer.text('flame-status');
    const asked = (await viewer.ask(`summary?from_ms=${from}&to_ms=${to}`)).totals.allocations;
    assert.match(inside, new RegExp(`^all: ${humanCount(asked)},`));
    assert.ok(asked > 0 && asked < report(file).totals.allocations, String(asked));
    const reported = report(file, [`--time=${from}ms..${to}ms`]);
    assert.equal(asked, reported.totals.allocations);
    await page.getByTestId('tab-summary').click();
    await viewer.idle();
    assert.equal(await viewer.text('figure-live_bytes'), humanBytes(reported.totals.live_bytes));
    const { from_ms: begin, to_ms: end } = (await viewer.ask(`summary?from_ms=${from}&to_ms=${to}`)).selection.filter.time;
    assert.ok((await page.locator('.figures').innerText()).includes(`${humanCount(Math.round((asked * 1000) / (end - begin)))} a second`));
    const strip = await page.getByTestId('time-strip').boundingBox();
    const range = await page.getByTestId('time-range').boundingBox();
    assert.ok(Math.abs((range.x - strip.x) / strip.width - from / points.end_ms.at(-1)) < 0.02, JSON.stringify([strip, range]));
    assert.ok(Math.abs(range.width / strip.width - (to - from) / points.end_ms.at(-1)) < 0.02, JSON.stringify([strip, range]));
    assert.match(await page.locator('.figures').innerText(), /whole recording, not filtered/);
    assert.match(await page.getByTestId('rss-bar').innerText(), /whole recording, not filtered/);
    await page.getByTestId('tab-flame').click();
    await viewer.idle();
    await page.reload();
    await viewer.idle();
    assert.equal(await viewer.text('flame-status'), inside);
  });

  it('a click shows the heap as it stood then: between two moments with the cache it is live', async () => {
    await viewer.open('#/charts');
    const { points } = await viewer.ask('series?value=live_bytes&function=keep_cache');
    const ends = points.end_ms;
    const live = ends.filter((_end, i) => points.live_bytes[i] === 4_000_000);
    assert.ok(live.length > 0);
    const middle = (live[0] + live.at(-1)) / 2;
    const over = await page.locator('.chart .u-over').boundingBox();
    await page.mouse.click(over.x + over.width * (middle - ends[0]) / (ends.at(-1) - ends[0]), over.y + 60);
    await viewer.idle();
    assert.ok(viewer.parameters().has('to_ms') && !viewer.parameters().has('from_ms'), viewer.fragment());
    assert.match(await page.locator('.chip').innerText(), /the heap as it stood at/);
    await page.getByTestId('tab-functions').click();
    await viewer.idle();
    const rows = await viewer.rows('Functions');
    const cache = rows.find((row) => row.name === 'keep_cache()');
    assert.equal(exactNumber(cache?.costs[1] ?? ''), 4_000_000);
    await page.getByTestId('tab-leaks').click();
    await viewer.idle();
    assert.match(await page.locator('.notice').innerText(), /^Not applied here: the time range \(leaks are always those at the end/);
  });

  it('a range may be typed', async () => {
    await viewer.open('#/charts');
    const from = page.getByLabel('From', { exact: true });
    await from.fill('0.1s');
    await from.press('Tab');
    await viewer.idle();
    assert.equal(viewer.parameters().get('from_ms'), '100');
    assert.equal(await from.inputValue(), '100ms');
    const { time } = (await viewer.ask('summary?from_ms=100')).selection.filter;
    assert.ok(time.from_ms <= 100, JSON.stringify(time));
    assert.match(await page.locator('.chip').innerText(), new RegExp(`time\\s*${time.from_ms.toPrecision(3)} ms to the end`));
  });
});

describe('keys', () => {
  it('open and close the help', async () => {
    await viewer.open('#/summary');
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor({ state: 'visible' });
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  itAtNight('choose views by number', async () => {
    await viewer.open('#/summary');
    const tabs = await page.locator('.tab').evaluateAll((all) => all.map((tab) => tab.dataset.testid.replace('tab-', '')));
    const view = () => page.locator('main').getAttribute('data-view');
    for (const [key, place] of [['6', 5], ['1', 0], ['0', 9]]) {
      await page.keyboard.press(key);
      await viewer.idle();
      assert.equal(await view(), tabs[place]);
    }
    for (const place of [...tabs.keys()].map((step) => (10 + step) % tabs.length)) {
      await page.keyboard.press(']');
      await viewer.idle();
      assert.equal(await view(), tabs[place]);
    }
    await page.keyboard.press('[');
    await viewer.idle();
    assert.equal(await view(), tabs[8]);
  });

  it('open, close and follow a tree', async () => {
    await viewer.open('#/top-down');
    const table = await viewer.table('Top-down tree');
    await table.press('ArrowDown');
    const count = async () => (await viewer.rows('Top-down tree')).length;
    const opened = await count();
    assert.ok((await viewer.rows('Top-down tree')).some((row) => row.level === 2));
    await table.press('ArrowLeft');
    await viewer.idle();
    const closed = await count();
    assert.ok(closed < opened, `${closed} of ${opened}`);
    assert.ok((await viewer.rows('Top-down tree')).every((row) => row.level === 1));
    await table.press('ArrowRight');
    await viewer.idle();
    assert.equal(await count(), opened);
  });

  it('a filter can be changed where it was typed, and Esc leaves the field', async () => {
    await viewer.open('#/bottom-up');
    await page.keyboard.press('/');
    await page.keyboard.type('leak');
    await page.keyboard.press('Enter');
    await viewer.idle();
    assert.equal(viewer.parameters().get('function'), 'leak');
    await page.getByTitle('Change this filter').click();
    await page.keyboard.press('End');
    await page.keyboard.type('_receipt');
    await page.keyboard.press('Enter');
    await viewer.idle();
    assert.equal(viewer.parameters().get('function'), 'leak_receipt');
    await page.keyboard.press('Escape');
    await page.keyboard.press('x');
    await viewer.idle();
    assert.equal(viewer.parameters().get('function'), null);
  });

  itAtNight('h opens the hot path down to the cache', async () => {
    await viewer.open('#/top-down');
    const table = await viewer.table('Top-down tree');
    await table.press('ArrowDown');
    await table.press('h');
    await page.waitForFunction(() => document.querySelector('[role=treegrid]')?.textContent?.includes('keep_cache') === true);
    assert.ok((await viewer.rows('Top-down tree')).some((row) => row.name === 'keep_cache()'));
  });

  itAtNight('h opens the heaviest row when nothing is selected, wherever the focus is', async () => {
    await viewer.open('#/bottom-up?cost=live_bytes');
    const [heaviest] = await viewer.rows('Bottom-up tree');
    await page.evaluate(() => document.activeElement?.blur?.());
    await page.keyboard.press('h');
    await page.waitForFunction(() => document.querySelectorAll('[role=treegrid] [role=row][aria-level="2"]').length > 0);
    await viewer.idle();
    const rows = await viewer.rows('Bottom-up tree');
    assert.deepEqual([rows[0].name, rows[1].level], [heaviest.name, 2]);
    await page.locator('#filter-text').press('h');
    assert.equal(await page.locator('#filter-text').inputValue(), 'h');
  });

  for (const [way, open] of someOf([
    ['by its button', () => page.getByRole('button', { name: 'Open hot path' }).click()],
    ['by h', () => page.keyboard.press('h')],
  ], 2)) {
    it(`the hot path, opened ${way}, ends in the selected row, with focus and stacks`, async () => {
      await viewer.open('#/top-down?cost=live_bytes');
      await page.evaluate(() => document.activeElement?.blur?.());
      await open();
      await page.waitForSelector('.table-selected');
      await viewer.idle();
      const seen = await page.evaluate(() => {
        const rows = [...document.querySelectorAll('.table-body [role=row]')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex);
        const levels = rows.map((row) => Number(row.getAttribute('aria-level')));
        const chosen = rows.findIndex((row) => row.classList.contains('table-selected'));
        const focused = document.activeElement;
        return {
          focus: [focused?.getAttribute('role'), focused?.getAttribute('aria-activedescendant') === rows[chosen]?.id],
          // Rows from the first on are opened one in the other, down to the selected one and no further.
          path: levels.slice(0, chosen + 1),
          open: rows.map((row) => row.getAttribute('aria-expanded') === 'true'),
          chosen,
          frame: rows[chosen]?.querySelector('.code')?.getAttribute('title')?.split('\n')[0],
          frames: [...document.querySelectorAll('section.stack .code')].map((code) => code.getAttribute('title')?.split('\n')[0]),
        };
      });
      assert.deepEqual(seen.focus, ['treegrid', true]);
      assert.ok(seen.chosen > 0, JSON.stringify(seen));
      assert.deepEqual(seen.path, seen.path.map((_, i) => i + 1));
      assert.deepEqual(seen.open.slice(0, seen.chosen), seen.path.slice(1).map(() => true));
      assert.ok(!seen.open.slice(seen.chosen + 1).includes(true), JSON.stringify(seen));
      assert.ok(seen.frames.includes(seen.frame), JSON.stringify(seen));
      await page.keyboard.press('ArrowUp');
      await page.waitForFunction((wanted) => document.querySelector('.table-selected')?.ariaRowIndex === String(wanted + 1), seen.chosen);
    });
  }

  it('Enter leads from a tree to caller and callee', async () => {
    await viewer.open('#/bottom-up?function=churn&cost=temporary');
    const table = await viewer.table('Bottom-up tree');
    await table.press('ArrowDown');
    await table.press('Enter');
    await viewer.idle();
    assert.equal(await page.locator('main').getAttribute('data-view'), 'functions');
  });
});

describe('rows', () => {
  it('are copied as they are reported in full', async () => {
    await stage.session.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(server.url).origin });
    await viewer.open('#/functions?cost=allocations&function=churn&by_self=1');
    const table = await viewer.table('Functions');
    await table.press('ArrowDown');
    await viewer.idle();
    await table.press('c');
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /^churn\(int\)\t/);
    assert.match(copied, /\tAllocations: 20,000\t/);
  });

  it('have text that can be selected', async () => {
    await viewer.open('#/summary');
    const selected = await page.evaluate(() => {
      const range = document.createRange();
      range.selectNodeContents(document.querySelector('.facts'));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      return getSelection().toString();
    });
    assert.ok(selected.includes(report(file).run.command_line), selected);
  });
});

describe('a long answer', () => {
  for (const [view, route, label] of someOf([['top-down', 'tree', 'Tree'], ['leaks', 'leaks', 'Leaks'], ['flame', 'tree', 'Flame graph']], 3)) {
    it(`${view}: says that it takes long, can be stopped, and asked again`, async () => {
      const slow = await stage.view(server);
      await slow.open('#/summary');
      const pattern = `**/api/v1/${route}?*`;
      await slow.page.route(pattern, () => undefined); // never answered
      const stopped = slow.page.waitForEvent('requestfailed', (request) => request.url().includes(`/api/v1/${route}`));
      await slow.page.getByTestId(`tab-${view}`).click();
      const waiting = slow.page.locator('.waiting');
      await waiting.getByText(`${label}: working`).waitFor();
      assert.ok(!(await slow.page.locator('main').innerText()).includes('one moment'), 'two notes about one wait');
      await slow.page.getByTestId('tab-summary').click({ trial: true }); // nothing is blocked
      await waiting.getByRole('button', { name: 'Cancel' }).click();
      await stopped;
      await slow.idle();
      assert.match(await slow.page.locator('.notice').innerText(), /you stopped this/);
      await slow.page.unroute(pattern);
      await slow.page.getByRole('button', { name: 'Ask again' }).click();
      await slow.idle();
      assert.equal(await slow.page.locator('.notice').filter({ hasText: 'stopped' }).count(), 0);
      assert.ok(await slow.page.locator('.flame-canvas, .table-body [role=row]').first().isVisible());
      assert.deepEqual(slow.complaints, []);
      await slow.page.close();
    });
  }
});

describe('an answer that takes long', () => {
  it('shows for how long, until it is stopped', async () => {
    const slow = await stage.view(server);
    await slow.open('#/summary');
    let held = null;
    await slow.page.route('**/api/v1/tree?*', (route) => { held = route; }); // never answered
    await slow.page.getByTestId('tab-flame').click();
    await slow.page.getByTestId('waiting').getByText(/Flame graph: working, \d+ s/).waitFor();
    await held.abort();
    await slow.page.close();
  });

  it('can be asked for, and counts what was answered', async () => {
    const quiet = await serve(file); // no page asks it anything
    const address = new URL(quiet.url);
    const headers = { authorization: `Bearer ${address.searchParams.get('token')}` };
    const ask = async (route) => (await fetch(new URL(`/api/v1/${route}`, address), { headers })).json();
    const reported = await ask('work');
    assert.equal(reported.begun, reported.finished + reported.abandoned);
    await ask('summary?function=progress');
    assert.equal((await ask('work')).finished, reported.finished + 1);
    await quiet.stop();
  });
});

describe('a recording in progress', () => {
  itAtNight('shows the marks that were set', async () => {
    const live = await recordLive(stage.folder, 'marked.cairn');
    control(live.file, 'mark', '<b>half</b> time');
    await live.end();
    const [mark] = report(live.file).marks;
    const other = await serve(live.file);
    const marked = await stage.view(other);
    await marked.open('#/charts');
    const button = marked.page.getByRole('list', { name: 'Marks' }).getByRole('button').first();
    assert.match(await button.innerText(), /: <b>half<\/b> time$/);
    const svg = readSvg((await marked.download(marked.page.getByRole('button', { name: 'SVG', exact: true }))).bytes);
    assert.ok(svg.words.includes('&lt;b&gt;half&lt;/b&gt; time'), svg.words.join('; '));
    await button.click();
    await marked.idle();
    assert.equal(Number(marked.parameters().get('to_ms')), Math.max(mark.time_ms, 1));
    await marked.page.getByTestId('tab-summary').click();
    await marked.idle();
    assert.match(await marked.page.locator('.time-mark').getAttribute('title'), /: <b>half<\/b> time$/);
    await marked.page.close();
    await other.stop();
    assert.deepEqual(marked.complaints, []);
  });

  it('is followed until it ends', async () => {
    const live = await recordLive(stage.folder, 'live.cairn');
    const other = await serve(live.file);
    const follower = await stage.view(other);
    try {
      await follower.open('#/leaks?leaks_by=call_site&function=leak_receipt');
      await follower.page.locator('.head-live').waitFor({ state: 'visible' });
      const leaked = (bytes) => follower.page.waitForFunction(
        (text) => document.querySelector('[aria-label=Leaks] .cost')?.getAttribute('title')?.includes(text) === true, bytes,
      );
      await leaked('5,000 B');
      assert.match(await follower.text('live-age'), /^updated (now|.* ago)$/);
      const pause = follower.page.getByRole('button', { name: 'Pause' });
      await pause.click();
      live.input.write('xx');
      const served = async () => (await follower.ask('leaks?function=leak_receipt')).selection.totals.live_bytes;
      for (const deadline = Date.now() + DEADLINE_MS; await served() < 15_000;) {
        assert.ok(Date.now() < deadline, 'the server does not follow the file');
      }
      await follower.idle();
      await leaked('5,000 B'); // still
      await pause.click();
      await leaked('15,000 B');
      // A range begins with a whole slice, so "now" has to be in a later one than these receipts.
      const { runtime_ms: seen, slice_ms: slice } = await follower.ask('meta');
      for (const deadline = Date.now() + DEADLINE_MS; Number(follower.parameters().get('from_ms')) < seen + 2 * slice;) {
        assert.ok(Date.now() < deadline, 'the page does not follow the run');
        await follower.page.getByRole('button', { name: 'Growth from now' }).click();
        await follower.idle();
      }
      assert.equal(await follower.page.locator('main').getAttribute('data-view'), 'bottom-up');
      live.input.write('x');
      await follower.page.waitForFunction(() => [...document.querySelectorAll('[role=treegrid] .cost')].some((cost) => cost.title.startsWith('Live now: 4.88 KiB (5,000 B)')));
      for (const view of someOf(['summary', 'bottom-up', 'flame', 'functions', 'leaks', 'threads'], 3)) { // what is live is not leaked yet
        await follower.follow(`#/${view}?cost=live_bytes`);
        const shown = await follower.page.locator('main').innerText();
        assert.ok(shown.includes('Live now') && !/leaked|(at|until) the end/i.test(shown), `${view}: ${shown}`);
      }
      await follower.follow('#/leaks?leaks_by=call_site&function=leak_receipt');
      await live.end();
      await leaked('20,000 B');
      await follower.page.locator('.head-live').waitFor({ state: 'detached' });
      assert.equal(report(live.file).run.state, 'finished');
    } finally {
      live.input.end();
      await follower.page.close();
      await other.stop();
    }
    assert.deepEqual(follower.complaints, []);
  });
});
