// SPDX-License-Identifier: MIT
// No violation that axe-core finds, in every view and both themes, alone and in a comparison; and every view fits a
// small screen.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, it } from 'node:test';
import { recordWorkload, webRequire, withStage } from './support.mjs';

const SOURCE = encodeURIComponent(path.join(import.meta.dirname, 'workload.cpp'));
const VIEWS = [
  'summary', 'peak', 'bottom-up', 'functions?fn=keep_cache()', 'top-down', 'flame', 'flame?search=keep&layout=flame', 'charts', 'charts?by=stack', 'sizes',
  'sizes?histogram=lifetimes', 'sizes?histogram=size_lifetime', 'leaks', 'threads', 'rss', 'source', `source?path=${SOURCE}&line=27`, 'summary?function=churn',
];
const COMPARED = ['summary', 'bottom-up', 'functions?fn=keep_cache()', 'flame', 'charts', 'sizes', 'leaks', 'threads'];
const PHONE = { width: 844, height: 390 };
const UPRIGHT = { width: 390, height: 844 };
const NARROW = { width: 800, height: 600 };
const NARROW_COMPARED = [...VIEWS.filter((view) => !view.includes('function=')), 'threads?cost=temporary', 'threads?cost=allocated_bytes', 'leaks?leaks_by=call_site'].map((view) => `${view}${view.includes('?') ? '&' : '?'}diff=1`);
const SMALL_SCREEN = { width: 1280, height: 720 };

let viewer, page;
const axe = fs.readFileSync(webRequire.resolve('axe-core/axe.min.js'), 'utf8');
const stage = withStage(async () => {
  const old = recordWorkload(stage.folder, 'old.cairn');
  ({ viewer, page } = await stage.open(recordWorkload(stage.folder, 'workload.cairn', ['more']), ['--diff', old]));
});

/** The rules that look at colours, of those that are in force unless somebody says otherwise. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block'];

/** What axe-core finds in the page as it is, with the sizes of targets that WCAG 2.2 asks for; `only` by these rules, unless there are none. */
async function violations(only = []) {
  if (await page.evaluate(() => globalThis.axe === undefined)) {
    await page.evaluate(axe);
  }
  return page.evaluate(async (rules) => {
    const chosen = rules.length === 0 ? { rules: { 'target-size': { enabled: true } } } : { runOnly: { type: 'rule', values: rules } };
    const result = await globalThis.axe.run(document, { resultTypes: ['violations'], ...chosen });
    return result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html} ${n.failureSummary}`).join(' | ')}`);
  }, only);
}

/** In both themes. The document is the same in both; so what does not ask for colours is asked once. */
async function assertAccessible() {
  await page.emulateMedia({ colorScheme: 'light' });
  assert.deepEqual(await violations(), [], 'light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForFunction(() => getComputedStyle(document.documentElement).colorScheme === 'dark');
  assert.deepEqual(await violations(OF_COLOURS), [], 'dark');
  await page.emulateMedia({ colorScheme: 'light' });
}

describe('in both themes', () => {
  for (const view of [...VIEWS, ...COMPARED.map((name) => `${name}${name.includes('?') ? '&' : '?'}diff=1`)]) {
    it(`${view} has no violation`, async () => {
      await viewer.follow(`#/${view}`);
      await assertAccessible();
    });
  }

  it('a pressed toggle can be read under the mouse', async () => {
    for (const view of ['sizes', 'leaks', 'charts', 'functions', 'flame']) {
      await viewer.follow(`#/${view}`);
      const pressed = page.locator('main [aria-pressed=true]');
      assert.ok((await pressed.count()) > 0, view);
      for (let i = 0; i < (await pressed.count()); i++) {
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          await pressed.nth(i).hover();
          assert.deepEqual(await violations(OF_COLOURS), [], `${view} ${i} ${colorScheme}`);
        }
      }
    }
    await page.emulateMedia({ colorScheme: 'light' });
  });

  it('the help has no violation', async () => {
    await viewer.open('#/summary');
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await assertAccessible();
  });

  it('a waiting view has no violation', async () => {
    await viewer.open('#/summary');
    await page.route('**/api/v1/leaks?*', () => undefined);
    await page.getByTestId('tab-leaks').click();
    await page.locator('.waiting').waitFor();
    await assertAccessible();
    await page.unroute('**/api/v1/leaks?*');
  });
});

/** Edges of what a reader works with, and how far the page would have to be pushed aside. */
function measure() {
  const main = document.querySelector('main');
  const tabs = document.querySelector('.tabs');
  const work = main.querySelector('.table, canvas, svg, .figures, .notice');
  const parts = [...main.querySelectorAll('.view > *')].filter((part) => part.getBoundingClientRect().height > 0);
  const lowest = (part) => Math.max(part.getBoundingClientRect().bottom, ...(part.matches('.split') ? [...part.children].map((child) => child.getBoundingClientRect().bottom) : []));
  return {
    covered: parts.slice(1).filter((part, i) => part.getBoundingClientRect().top < lowest(parts[i]) - 1).map((part) => part.className),
    aside: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    mainHeight: main.getBoundingClientRect().height,
    isReachable: work !== null && (work.getBoundingClientRect().top < innerHeight || main.scrollHeight > main.clientHeight),
    workHeight: work?.getBoundingClientRect().height ?? 0,
    tabLines: new Set([...tabs.querySelectorAll('.tab')].map((tab) => tab.getBoundingClientRect().top)).size,
    cutTables: [...main.querySelectorAll('.table')].filter((table) => table.scrollWidth > table.clientWidth).map((table) => table.getAttribute('aria-label')),
  };
}

it('a table fits into its place as soon as its answer is there, however late timers are', async () => {
  await page.setViewportSize(NARROW);
  await viewer.follow('#/summary?diff=1');
  await page.evaluate(() => {
    const { setTimeout } = globalThis;
    globalThis.onTime = () => { globalThis.setTimeout = setTimeout; };
    globalThis.setTimeout = (call, ms) => setTimeout(call, Math.max(ms ?? 0, 1000));
  });
  await viewer.follow('#/source?diff=1');
  const { cutTables } = await page.evaluate(measure);
  await page.evaluate(() => globalThis.onTime());
  assert.equal(await page.locator('main .table').count(), 2);
  assert.deepEqual(cutTables, []);
});

it('an empty table shows the whole of its words', async () => {
  await page.setViewportSize(NARROW);
  await viewer.follow('#/leaks?function=nothing_matches');
  const [words, table] = await Promise.all(['.table-empty', 'main .table'].map((what) => page.locator(what).boundingBox()));
  assert.ok(words.y + words.height <= table.y + table.height, JSON.stringify({ words, table }));
});

/** Their tables fit on a phone, too. */
const FITTING = ['peak', 'leaks'];

for (const [name, size, least] of [['on a phone held sideways', PHONE, 180], ['on a phone', UPRIGHT, 480], ['at 800 by 600', NARROW, 300], ['at 1024 by 768', { width: 1024, height: 768 }, 440], ['at 1280 pixels', SMALL_SCREEN, 480], ['at 1920 by 1080', { width: 1920, height: 1080 }, 800]]) {
  describe(name, () => {
    before(async () => {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: 'light' });
    });
    for (const view of size === NARROW ? [...VIEWS, ...NARROW_COMPARED] : VIEWS) {
      it(`${view} is not pushed aside, and leaves room for what is looked at`, async () => {
        await viewer.follow(`#/${view}`);
        const seen = await page.evaluate(measure);
        assert.equal(seen.aside, 0);
        assert.deepEqual(seen.covered, []);
        assert.ok(seen.mainHeight >= least, JSON.stringify(seen));
        assert.ok(seen.isReachable && seen.workHeight >= 24, JSON.stringify(seen));
        if (size.width >= 800) {
          assert.equal(seen.tabLines, 1);
        }
        if (size.width >= 800 || (size === UPRIGHT && FITTING.includes(view))) {
          assert.deepEqual(seen.cutTables, []);
        }
      });
    }
  });
}
