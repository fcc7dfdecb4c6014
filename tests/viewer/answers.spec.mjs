// SPDX-License-Identifier: MIT
// The first page names the fault of a program, says how large it is, and leads to the view that shows it; and the time
// line filters every view. The oracle is the program: leaky.c states what it does.
import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { exactNumber, exportHtml, humanBytes, humanCount, recordLeaky, report, someOf, Viewer, withStage } from './support.mjs';

const LEAKED = 120 * 8192;
const CACHE = 8 << 20;
const TEMPORARY = 12_000;

let file, reported, viewer, page;
const stage = withStage(async () => {
  file = recordLeaky(stage.folder);
  reported = report(file);
  ({ viewer, page } = await stage.open(file));
});

const card = (kind, on = page) => on.getByTestId(`finding-${kind}`);

async function view() {
  await viewer.idle();
  return page.locator('main').getAttribute('data-view');
}

/** What every page of the recording must show first: the list of the report, here with its figures. */
async function assertCards(on) {
  const first = on.locator('.card').first();
  assert.equal(await first.getAttribute('data-testid'), 'finding-peak');
  assert.match(await first.locator('.code').getAttribute('title'), /^fill_cache\n/);
  assert.equal(await first.locator('.card-figure > span').first().innerText(), humanBytes(CACHE));
  const growth = card('growth', on);
  assert.match(await growth.locator('.code').getAttribute('title'), /^remember_client\n/);
  assert.equal(await growth.locator('.card-figure > span').first().innerText(), humanBytes(LEAKED));
  assert.ok((await growth.innerText()).includes(`${humanBytes(LEAKED)} in 120 blocks`), await growth.innerText());
  assert.match(await card('churn', on).locator('.code').getAttribute('title'), /^parse_request\n/);
  assert.ok((await card('churn', on).innerText()).includes(`${humanCount(TEMPORARY)} temporary allocations`));
  const sure = { high: 'certain', medium: 'likely', low: 'an estimate' };
  const shown = await on.locator('.card').evaluateAll((cards) => cards.map((one) => [
    one.dataset.testid, one.querySelector('.card-sentence').textContent, one.querySelector('.card-figure > span').textContent,
    one.querySelector('.card-sure').textContent, one.querySelector('.code')?.getAttribute('title')?.split('\n')[0] ?? '']));
  assert.deepEqual(shown, reported.findings.items.map((item) => [
    `finding-${item.kind}`, item.sentence, humanBytes(item.bytes), sure[item.confidence], item.function ?? '']));
}

describe('the findings', () => {
  it('name the functions that the program says, past its wrapper, in order', async () => {
    await viewer.open('#/summary');
    await assertCards(page);
  });

  it('are above the rest of the page', async () => {
    await viewer.open('#/summary');
    const top = async (selector) => (await page.locator(selector).first().boundingBox()).y;
    const tops = [await top('.cards'), await top('.figures'), await top('.time-tall'), await top('.tops'), await top('.health'), await top('.facts')];
    assert.deepEqual(tops, [...tops].sort((a, b) => a - b));
    assert.ok((await page.locator('.cards').boundingBox()).height < 400);
  });

  for (const [width, columns] of someOf([[800, 2], [1024, 2], [1440, 4]], 2)) {
    it(`leave no gap beside four of them at ${width} pixels`, async () => {
      await page.setViewportSize({ width, height: 800 });
      await viewer.open('#/summary');
      // The workload has fewer findings than four.
      const lefts = await page.locator('.cards').evaluate((list) => {
        const cards = [...list.children];
        while (list.children.length < 4) {
          list.append(cards[0].cloneNode(true));
        }
        const found = [...list.children].map((one) => one.getBoundingClientRect().left);
        [...list.children].filter((one) => !cards.includes(one)).forEach((one) => one.remove());
        return found;
      });
      assert.equal(new Set(lefts).size, columns, String(lefts));
      await page.setViewportSize({ width: 1280, height: 800 });
    });
  }

  for (const [kind, button, wanted] of [
    ['growth', 'Leaks', 'leaks'], ['growth', 'Over time', 'charts'], ['peak', 'Why the peak', 'peak'], ['peak', 'Flame graph', 'flame'], ['churn', 'Bottom-up', 'bottom-up'],
  ]) {
    it(`of ${kind} lead to ${wanted}`, async () => {
      await viewer.open('#/summary');
      await card(kind).getByRole('button', { name: button }).click();
      assert.equal(await view(), wanted);
    });
  }

  it('keep figures and units in one line', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await viewer.open('#/summary');
    const lines = await page.locator('.sentence-figure').evaluateAll((all) => all.map((one) => [one.textContent, one.getClientRects().length]));
    assert.ok(lines.length > 3 && lines.every(([, count]) => count === 1), JSON.stringify(lines));
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  it('are not made under a time range, and the page says so', async () => {
    await viewer.open('#/summary?from_ms=0&to_ms=200');
    assert.match(await viewer.text('no-findings'), /none under a time range/);
    assert.equal(await page.locator('.card').count(), 0);
  });

  it('are in the HTML report too', async () => {
    const html = exportHtml(file, path.join(stage.folder, 'leaky.html'));
    const own = await stage.newPage();
    const shown = new Viewer(own, pathToFileURL(html).href);
    await shown.open('#/summary');
    await assertCards(own);
    await card('peak', own).getByRole('button', { name: 'Why the peak' }).click();
    await shown.idle();
    assert.match((await shown.rows('Gained before the peak'))[0].name, /./);
    assert.deepEqual(shown.complaints, []);
    await own.close();
  });
});

describe('why the peak', () => {
  it('says what each call site gained, and the peak without it', async () => {
    await viewer.open('#/summary');
    const [, time] = /after ([^,]+), in /.exec(await page.locator('.figures').innerText());
    await viewer.open('#/peak');
    const rows = await viewer.rows('Gained before the peak');
    assert.match(rows[0].cells[2], /^fill_cache/);
    assert.equal(exactNumber(rows[0].costs[0]), CACHE);
    assert.equal(rows[0].cells[1], humanBytes(reported.totals.peak_bytes - CACHE));
    assert.equal(rows[0].cells[3], 'leaky');
    const { peak_rise: rise } = reported.findings;
    assert.ok((await viewer.text('peak-text')).includes(`to ${humanBytes(reported.totals.peak_bytes)} at ${time}.`));
    assert.equal(rise.sites[0].gained_bytes, CACHE);
    const bars = await page.locator('.cost-bar').evaluateAll((all) => all.map((bar) => Number.parseFloat(bar.style.width)));
    assert.ok(Math.abs(bars[0] - (CACHE / reported.totals.peak_bytes) * 100) < 0.1, String(bars));
  });

  it('leads from a call site to its function', async () => {
    await viewer.open('#/peak');
    await page.getByLabel('Gained before the peak').getByRole('button', { name: 'fill_cache' }).first().click();
    assert.equal(await view(), 'functions');
    assert.match(viewer.parameters().get('fn'), /^fill_cache/);
  });

  it('is that of the whole recording, and says so under a filter', async () => {
    await viewer.open('#/peak?function=remember');
    assert.match(await page.locator('.notice').innerText(), /^Not applied here: functions, files and modules/);
    assert.match((await viewer.rows('Gained before the peak'))[0].cells[2], /^fill_cache/);
  });
});

describe('wrappers', () => {
  const names = async (label) => (await viewer.rows(label)).map((row) => row.name);
  const toggle = async () => {
    await page.getByRole('button', { name: 'Wrappers', exact: true }).click();
    await viewer.idle();
  };

  it('are not where a bottom-up tree begins, unless they are asked for', async () => {
    await viewer.open('#/bottom-up?cost=temporary');
    assert.deepEqual((await names('Bottom-up tree')).slice(0, 1), ['parse_request']);
    assert.ok(!(await names('Bottom-up tree')).includes('my_alloc'));
    await toggle();
    assert.deepEqual((await names('Bottom-up tree')).slice(0, 1), ['my_alloc']);
    assert.equal(viewer.parameters().get('wrappers'), '1');
  });

  it('are not frames of the flame graph, unless they are asked for', async () => {
    await viewer.open('#/flame?search=my_alloc&min_share=0');
    assert.match(await viewer.text('flame-match'), /^0 frames match/);
    await toggle();
    assert.match(await viewer.text('flame-match'), new RegExp(`^3 frames match: ${humanBytes(reported.totals.peak_bytes)}`));
  });

  it('unfold one by one in a tree, by the button and by its key, and fold again', async () => {
    await viewer.open('#/bottom-up?cost=temporary');
    const before = await names('Bottom-up tree');
    await page.getByLabel(/Show the wrapper frame/).first().click();
    await viewer.idle();
    const unfolded = await names('Bottom-up tree');
    assert.equal(unfolded[0], 'my_alloc');
    assert.ok(unfolded.includes('parse_request'), String(unfolded)); // the button opened what it shows
    assert.match(viewer.parameters().get('unfold'), /^[0-9]+$/);
    assert.equal(viewer.parameters().get('wrappers'), null);
    await page.getByRole('treegrid').focus();
    await page.keyboard.press('Home');
    await page.locator('[aria-selected=true]').waitFor();
    await page.keyboard.press('u');
    await viewer.idle();
    assert.deepEqual(await names('Bottom-up tree'), before);
    assert.equal(viewer.parameters().get('unfold'), null);
  });

  it('keep the other open rows when one unfolds', async () => {
    await viewer.open('#/top-down');
    const before = await names('Top-down tree');
    assert.ok(before.length > 2, String(before));
    await page.getByLabel(/Show the/).last().click();
    await viewer.idle();
    const after = await names('Top-down tree');
    assert.ok(before.every((name) => after.includes(name)) && after.includes('my_alloc'), `${before} / ${after}`);
  });

  it('unfold in the flame graph', async () => {
    await viewer.open('#/flame?min_share=0');
    const count = async () => Number(/(\d+) frame/.exec(await viewer.text('flame-count'))[1]);
    const folded = await count();
    await page.getByRole('application').focus();
    for (let step = 0; step < 12 && viewer.parameters().get('unfold') === null; step++) {
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('u');
      await viewer.idle();
    }
    assert.match(viewer.parameters().get('unfold') ?? '', /^[0-9]+$/);
    assert.ok((await count()) > folded);
  });

  it('are left out of the list of functions, whose callers have their costs', async () => {
    await viewer.open('#/functions');
    assert.equal((await names('Functions'))[0], 'main');
    assert.ok(!(await names('Functions')).includes('my_alloc'));
    await toggle();
    assert.ok((await names('Functions')).includes('my_alloc'));
  });

  it('of a stack are one line, which unfolds', async () => {
    await viewer.open('#/leaks');
    const frames = page.getByLabel('Frames, innermost first');
    const before = await frames.innerText();
    assert.match(before, /my_alloc[^]*remember_client[^]*main[^]*▸ \d+ frames of/);
    const fold = frames.getByRole('button', { name: / frames of / });
    const folded = Number(/(\d+) frames/.exec(await fold.innerText())[1]);
    const lines = await frames.locator('li').count();
    await fold.click();
    assert.equal(await frames.locator('li').count(), lines - 1 + folded);
    assert.match(await frames.innerText(), /_start/);
  });

  it('top-down opens as far as nearly all is below one function', async () => {
    await viewer.open('#/top-down');
    const rows = await viewer.rows('Top-down tree');
    assert.deepEqual(rows.slice(0, 2).map((row) => [row.name, row.level]), [['main', 1], ['fill_cache', 2]]);
  });

  it('are folded and shown in the HTML report as well', async () => {
    const html = exportHtml(file, path.join(stage.folder, 'folded.html'));
    const own = await stage.newPage();
    const shown = new Viewer(own, pathToFileURL(html).href);
    for (const [wrappers, first] of [['', 'parse_request'], ['1', 'my_alloc']]) {
      await shown.open(`#/bottom-up?cost=temporary&wrappers=${wrappers}`);
      assert.equal((await shown.rows('Bottom-up tree'))[0].name, first);
    }
    await own.close();
  });
});

describe('the time line', () => {
  const range = () => [viewer.parameters().get('from_ms'), viewer.parameters().get('to_ms')];

  for (const name of someOf(['summary', 'peak', 'bottom-up', 'functions', 'top-down', 'flame', 'charts', 'sizes', 'leaks', 'threads', 'rss', 'source'], 4)) {
    it(`is there in ${name}, and a drag filters`, async () => {
      await viewer.follow(`#/${name}`);
      const strip = await page.getByTestId('time-strip').boundingBox();
      await page.mouse.move(strip.x + strip.width * 0.25, strip.y + strip.height / 2);
      await page.mouse.down();
      await page.mouse.move(strip.x + strip.width * 0.5, strip.y + strip.height / 2, { steps: 3 });
      await page.mouse.up();
      await viewer.idle();
      const [from, to] = range().map(Number);
      const { points } = await viewer.ask('series');
      const end = points.end_ms.at(-1);
      assert.ok(Math.abs(from - end * 0.25) <= end / 50 && Math.abs(to - end * 0.5) <= end / 50, `${from} ${to} of ${end}`);
      const shown = await page.getByTestId('time-range').boundingBox();
      assert.ok(Math.abs(shown.width / strip.width - 0.25) < 0.02);
      await page.getByRole('button', { name: 'All of the run' }).click();
      await viewer.idle();
      assert.deepEqual(range(), [null, null]);
    });
  }

  it('has its place before it is there', async () => {
    let answer;
    const asked = new Promise((resolve) => {
      void page.route('**/api/v1/series?*', (route) => {
        answer = () => route.continue();
        resolve();
      });
    });
    await page.goto('about:blank');
    viewer.url.hash = '#/summary';
    await page.goto(viewer.url.href);
    await asked;
    await page.locator('.tops').waitFor();
    const before = await page.locator('.tops').boundingBox();
    await answer();
    await page.unroute('**/api/v1/series?*');
    await page.getByTestId('time-strip').waitFor();
    assert.deepEqual(await page.locator('.tops').boundingBox(), before);
  });

  it('moves by the keyboard alone', async () => {
    await viewer.open('#/flame');
    const from = page.getByRole('slider', { name: 'Time range from' });
    const to = page.getByRole('slider', { name: 'Time range to' });
    await from.press('PageUp');
    await viewer.idle();
    const [first] = range().map(Number);
    const end = Number(await to.getAttribute('aria-valuemax'));
    assert.ok(Math.abs(first - end / 10) <= 2, `${first} of ${end}`);
    await to.press('ArrowLeft');
    await viewer.idle();
    assert.ok(Math.abs(range().map(Number)[1] - end * 0.99) <= 2, viewer.fragment());
    await from.press('Home');
    await viewer.idle();
    assert.equal(range()[0], '0');
  });

  /** A place on the strip at which the cache is live. */
  async function placeOfCache() {
    const { points } = await viewer.ask('series');
    const live = points.end_ms.filter((_end, i) => points.live_bytes[i] >= CACHE);
    const strip = await page.getByTestId('time-strip').boundingBox();
    return [strip.x + (strip.width * live[Math.floor(live.length / 2)]) / points.end_ms.at(-1), strip.y + 5];
  }

  it('a click shows the heap of that moment', async () => {
    await viewer.open('#/functions');
    await page.mouse.click(...await placeOfCache());
    await viewer.idle();
    assert.equal(range()[0], null);
    const row = (await viewer.rows('Functions')).find((one) => one.name === 'fill_cache');
    assert.equal(exactNumber(row.costs[1]), CACHE);
  });

  it('says what there was under the mouse', async () => {
    await viewer.open('#/summary');
    await page.mouse.move(...await placeOfCache());
    assert.match(await viewer.text('time-now'), /, heap 8\.\d\d MiB, RSS [\d.]+ MiB$/);
  });
});
