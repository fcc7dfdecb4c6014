// SPDX-License-Identifier: MIT
// More than a page has room for: marks, processes, tabs, and what forced colours and paper leave of a page.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { recordSource, withStage } from './support.mjs';

let viewer, page;
const stage = withStage(async () => {
  ({ viewer, page } = await stage.open(recordSource(stage.folder, 'crowded.c', ['--blocks'], ['processes'])));
});

const SIZE = { width: 1280, height: 800 };

describe('hundreds of marks', () => {
  it('are shades on the time line, and labels in the chart that do not lie on each other', async () => {
    await viewer.open('#/charts');
    assert.match(await page.getByTestId('time-marks').getAttribute('aria-label'), /^40\d marks$/);
    assert.equal(await page.locator('.time-mark').count(), 0);
    assert.ok((await page.locator('.time-marks path').count()) <= 4);
  });

  it('are a table with only the rows in sight in the document', async () => {
    await viewer.open('#/charts');
    const table = page.getByRole('grid', { name: 'Marks' });
    assert.ok(Number(await table.getAttribute('aria-rowcount')) > 400);
    assert.ok((await table.getByRole('row').count()) < 40);
    await page.getByLabel('Find in Marks').fill('request 399');
    await page.keyboard.press('Enter');
    assert.match(await table.locator('.table-selected').innerText(), /request 399/);
  });
});

describe('hundreds of processes', () => {
  it('take no more elements than are in sight', async () => {
    await viewer.open('#/threads');
    const rows = Number(await page.getByRole('grid', { name: 'Processes' }).getAttribute('aria-rowcount'));
    assert.ok(rows > 300, String(rows));
    assert.ok((await page.getByRole('grid', { name: 'Processes' }).getByRole('row').count()) < 60);
    assert.ok((await page.locator('#app *').count()) < 3000);
  });

  it('are options of the picker once it is used', async () => {
    await viewer.open('#/threads');
    const picker = page.getByLabel('Process', { exact: true });
    assert.ok((await picker.locator('option').count()) < 10);
    await picker.focus();
    await page.waitForFunction(() => document.querySelectorAll('select[aria-label=Process] option').length > 300);
  });
});

describe('the tabs', () => {
  for (const [width, height] of [[720, 450], [390, 844], [320, 640]]) {
    it(`are all in sight at ${width} by ${height}`, async () => {
      await page.setViewportSize({ width, height });
      await viewer.open('#/summary');
      const hidden = await page.locator('.tab').evaluateAll((tabs) => tabs.filter((tab) => {
        const box = tab.getBoundingClientRect();
        const over = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        return box.right > innerWidth || box.height < 24 || !tab.contains(over);
      }).map((tab) => tab.textContent));
      assert.deepEqual(hidden, []);
      await page.setViewportSize(SIZE);
    });
  }

  it('leave the filter folded in a small window until it is used', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await viewer.load('#/leaks');
    assert.equal(await page.locator('.filter').isVisible(), false);
    await page.keyboard.press('/'); // it takes the next key
    await page.keyboard.type('keep');
    await page.keyboard.press('Enter');
    await viewer.idle();
    assert.equal(viewer.parameters().get('function'), 'keep');
    await page.setViewportSize(SIZE);
    await viewer.load('#/summary');
  });
});

describe('forced colours', () => {
  it('keep the keys of areas, and show what is pressed and which tab is open', async () => {
    await page.emulateMedia({ forcedColors: 'active' });
    await viewer.open('#/charts');
    const look = await page.evaluate(() => {
      const colour = (selector, what) => getComputedStyle(document.querySelector(selector))[what];
      return {
        key: colour('.legend-colour', 'backgroundColor'),
        page: colour('body', 'backgroundColor'),
        pressed: colour('main [aria-pressed=true]', 'backgroundColor'),
        other: colour('main [aria-pressed=false]', 'backgroundColor'),
        here: colour('.tab-here', 'borderBottomColor'),
        there: colour('.tab:not(.tab-here)', 'borderBottomColor'),
      };
    });
    assert.notEqual(look.key, look.page);
    assert.notEqual(look.pressed, look.other);
    assert.notEqual(look.here, look.there);
    await page.emulateMedia({ forcedColors: 'none' });
  });
});

describe('the focus', () => {
  it('of the ends of the time range is seen', async () => {
    await viewer.open('#/charts');
    await page.locator('.time-handle-from').focus();
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Tab');
    const outline = await page.locator('.time-handle-from').evaluate((handle) => getComputedStyle(handle).outlineStyle);
    assert.equal(outline, 'solid');
  });
});

describe('paper', () => {
  it('has the whole of the chart and of the flame graph', async () => {
    await viewer.open('#/charts');
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ media: 'print' });
    await page.waitForFunction(() => document.querySelector('.chart canvas').getBoundingClientRect().width <= 700);
    await page.emulateMedia({ media: 'screen' });
    await viewer.open('#/flame');
    const rows = await page.locator('.flame-spacer').evaluate((spacer) => parseFloat(spacer.style.height));
    await page.emulateMedia({ media: 'print' });
    await page.waitForFunction((height) => document.querySelector('.flame-canvas').height >= height * devicePixelRatio - 1, rows);
    await page.emulateMedia({ media: 'screen' });
    await page.setViewportSize(SIZE);
  });
});
