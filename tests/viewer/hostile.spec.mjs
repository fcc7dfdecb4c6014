// SPDX-License-Identifier: MIT
// Names of functions that are attacks stay text in every view, and in what is exported.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, it } from 'node:test';
import { IS_NIGHTLY, itAtNight, readSvg, recordHostile, report, shownName, someOf, withStage } from './support.mjs';

let file, old, names, viewer;
const stage = withStage(async () => {
  ({ file, old, names } = recordHostile(stage.folder));
  ({ viewer } = await stage.open(file, ['--diff', old, '--editor=x-edit://open?%f']));
});

/** Nothing ran, and nothing but the viewer's own elements is on the page. */
async function assertHarmless() {
  assert.deepEqual(viewer.complaints, []);
  const found = await viewer.page.evaluate(() => ({
    images: document.querySelectorAll('img, iframe, object, embed, base, form[action]').length,
    scripts: [...document.scripts].filter((script) => script.src === '' || new URL(script.src).origin !== location.origin).length,
    handlers: [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length,
    links: [...document.querySelectorAll('a')].filter((a) => /^(javascript|data):/i.test(a.href)).length,
  }));
  assert.deepEqual(found, { images: 0, scripts: 0, handlers: 0, links: 0 });
  const hidden = await viewer.page.evaluate(() => {
    const texts = [document.title, ...[...document.querySelectorAll('body *')].flatMap((e) => [
      ...[...e.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data), e.getAttribute('title') ?? '', e.getAttribute('aria-label') ?? '',
    ])];
    return texts.filter((text) => /[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/.test(text));
  });
  assert.deepEqual(hidden, [], 'text that is invisible or turns others around');
}

describe('hostile names', () => {
  it('are in the recording', () => {
    const functions = new Set(report(file).top.live_bytes.flatMap((site) => site.stacks.flatMap((stack) => stack.frames.map((f) => f.function))));
    for (const name of names) {
      assert.ok(functions.has(name), `${name} in ${JSON.stringify([...functions])}`);
    }
  });

  const place = encodeURIComponent('/<img src=x onerror=alert(9)>/<script>alert(9)<.c');
  const views = [
    'summary', 'peak', 'bottom-up', 'top-down', 'flame?min_share=0', 'flame?min_share=0&direction=bottom_up&cost=live_bytes', 'functions', 'functions?fn=hostile_place',
    'charts', 'charts?by=stack', 'charts?chart=rate', 'sizes', 'sizes?histogram=lifetimes', 'sizes?histogram=size_lifetime',
    'leaks', 'leaks?leaks_by=call_site', 'threads', 'rss', 'source', `source?path=${place}`,
  ];
  const compared = views.map((view) => `${view}${view.includes('?') ? '&' : '?'}diff=1`);
  // By day a quarter of the views: every other one of these with a comparison.
  for (const fragment of IS_NIGHTLY ? [...views, ...compared] : someOf(views.map((view, i) => (i % 8 === 0 ? view : compared[i])), 4)) {
    it(`do nothing in ${fragment}`, async () => {
      await viewer.follow(`#/${fragment}`);
      assert.equal(await viewer.page.locator('main .notice-bad').count(), 0);
      await assertHarmless();
    });
  }

  it('are in the views as text: thread, source file, command and recordings', async () => {
    await viewer.open('#/threads');
    assert.ok((await viewer.rows('Threads')).some((row) => row.cells[0] === '<img src=x>'));
    assert.ok((await viewer.rows('Modules')).some((row) => row.cells[0].endsWith('/<img src=x onerror=alert(11)>')));
    const head = await viewer.page.locator('header').innerText();
    assert.ok(head.includes('"><svg onload=alert(12)>.cairn') && head.includes('Against "><svg onload=alert(13)>.cairn'), head);
    assert.ok(head.includes('<script>alert(10)</script>'), head);
    const choices = await viewer.page.getByLabel('Thread', { exact: true }).locator('option').allInnerTexts();
    assert.ok(choices.some((choice) => choice.startsWith('<img src=x> (')), choices.join('; '));
    await viewer.open('#/leaks?function=hostile_place');
    const stack = await viewer.page.getByLabel('Stacks of the selected call site').innerText();
    assert.ok(stack.includes('<script>alert(9)<.c:7'), stack);
    await assertHarmless();
  });

  itAtNight('do nothing in opened trees and the stacks behind them', async () => {
    for (const [view, label] of [['bottom-up', 'Bottom-up tree'], ['top-down', 'Top-down tree']]) {
      await viewer.open(`#/${view}?cost=live_bytes`);
      const table = await viewer.table(label);
      await table.press('ArrowDown');
      await table.press('h');
      for (let i = 0; i < (IS_NIGHTLY ? 12 : 4); i++) {
        await table.press('ArrowDown');
        await table.press('ArrowRight');
        await viewer.idle();
      }
      await assertHarmless();
    }
  });

  it('do nothing when a file with one is chosen for comparison', async () => {
    await viewer.open('#/summary');
    await viewer.page.getByRole('button', { name: /Forget/ }).click();
    await viewer.page.getByRole('button', { name: 'Compare with…' }).waitFor();
    await viewer.page.locator('input[type=file]').setInputFiles(old);
    await viewer.page.waitForFunction(() => location.hash.includes('diff=1'));
    await viewer.idle();
    await assertHarmless();
  });

  it('are readable as they are', async () => {
    await viewer.open('#/functions');
    const rows = await viewer.rows('Functions');
    for (const name of names) {
      assert.ok(rows.some((row) => row.name === shownName(name)), name);
    }
  });

  it('do nothing when they are chosen, searched for and filtered by', async () => {
    for (const name of someOf(names, 12)) {
      const text = encodeURIComponent(name);
      await viewer.follow(`#/functions?fn=${text}`);
      assert.ok((await viewer.rows('Callers')).length > 0, `callers of ${name}`);
      await viewer.follow(`#/flame?search=${text}&cost=live_bytes`);
      await viewer.follow(`#/summary?function=${text}`);
      assert.ok((await viewer.page.locator('.chip').innerText()).includes(shownName(name)));
    }
    await assertHarmless();
  });

  it('do nothing in tooltips of the flame graph', async () => {
    await viewer.open('#/flame?cost=live_bytes&min_share=0&direction=bottom_up');
    const box = await viewer.page.getByTestId('flame-box').boundingBox();
    for (let x = 20; x < box.width; x += 90) {
      await viewer.page.mouse.move(box.x + x, box.y + 30);
      await viewer.page.mouse.move(box.x + x, box.y + 50);
    }
    await assertHarmless();
  });

  for (const view of ['charts', 'sizes']) {
    it(`are escaped in the drawing of ${view}`, async () => {
      await viewer.open(`#/${view}`);
      const svg = readSvg((await viewer.download(viewer.page.getByRole('button', { name: 'SVG', exact: true }))).bytes);
      assert.ok(svg.tags.every((tag) => ['path', 'rect', 'svg', 'text', 'title'].includes(tag)), String(svg.tags));
    });
  }

  it('are escaped in the exported drawing', async () => {
    await viewer.open('#/flame?cost=live_bytes&min_share=0');
    const [download] = await Promise.all([
      viewer.page.waitForEvent('download'),
      viewer.page.getByRole('button', { name: 'SVG', exact: true }).click(),
    ]);
    const svg = fs.readFileSync(await download.path(), 'utf8');
    const tags = new Set([...svg.matchAll(/<\/?([^\s>/]+)/g)].map((match) => match[1]));
    assert.deepEqual([...tags].sort(), ['g', 'rect', 'svg', 'text', 'title']);
    assert.ok(svg.includes('&lt;script&gt;alert(2)&lt;/script&gt;'), 'the name is there as text');
    assert.doesNotMatch(svg, /[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/);
    assert.ok(svg.includes('safe\\u{202e}dne_eht_morf_sdaer'));
  });
});
