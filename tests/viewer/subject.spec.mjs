// SPDX-License-Identifier: MIT
// From a finding to its place: cards select their subject, menus act on a name, tables find a text, and single blocks
// and mappings are listed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { readCsv, recordLeaky, recordSource, recordUnseen, someOf, withStage } from './support.mjs';

let viewer, page, crowded, unseen, uneven;
const stage = withStage(async () => {
  ({ viewer, page } = await stage.open(recordLeaky(stage.folder)));
  crowded = (await stage.open(recordSource(stage.folder, 'crowded.c', ['--blocks']))).viewer;
  unseen = (await stage.open(recordUnseen(stage.folder))).viewer;
  uneven = (await stage.open(recordSource(stage.folder, '../programs/findings/siblings.c', [], ['threads', '8']))).viewer;
});

function card(kind) {
  return page.getByTestId(`finding-${kind}`);
}

describe('a card', () => {
  for (const [kind, button, table] of [['growth', 'Leaks', 'Leaks'], ['peak', 'Why the peak', 'Gained before the peak'], ['churn', 'Bottom-up', 'Bottom-up tree']]) {
    it(`of ${kind} opens its view with its row selected, and the others step back`, async () => {
      await viewer.open('#/summary');
      const name = (await card(kind).locator('.code').getAttribute('title')).split('\n')[0];
      await card(kind).getByRole('button', { name: button }).click();
      await viewer.idle();
      const shown = page.getByLabel(table, { exact: true });
      assert.match(await shown.getAttribute('class'), /table-about/);
      assert.equal((await shown.locator('.table-selected .code').getAttribute('title')).split('\n')[0], name);
      assert.equal(viewer.parameters().get('subject'), name);
      if (kind === 'peak') {
        await shown.locator('.table-body [role=row]:not(.table-selected)').first().click();
        await page.waitForFunction(() => document.querySelector('.table-about') === null);
        assert.equal(viewer.parameters().get('subject'), null);
      }
    });
  }

  for (const [kind, button, table, subject] of [['uneven', 'Threads', 'Threads', 'worker-3'], ['rss', 'RSS', 'Mappings by owner', 'main']]) {
    it(`of ${kind} opens its view with the row of ${subject} selected`, async () => {
      const own = kind === 'uneven' ? uneven : unseen;
      await own.open('#/summary');
      await own.page.getByTestId(`finding-${kind}`).getByRole('button', { name: button, exact: true }).click();
      await own.idle();
      const shown = own.page.getByLabel(table, { exact: true });
      assert.match(await shown.getAttribute('class'), /table-about/);
      assert.ok((await shown.locator('.table-selected').innerText()).includes(subject));
    });
  }

  it('of growth marks its area over time', async () => {
    await viewer.open('#/summary');
    await card('growth').getByRole('button', { name: 'Over time' }).click();
    await viewer.idle();
    assert.match(await page.locator('.legend [aria-current=true]').innerText(), /remember_client/);
    assert.ok((await page.locator('.legend-aside').count()) > 0);
  });
});

describe('the tooltip of a frame', () => {
  it('has the file and line of a call, the module and costs', async () => {
    await viewer.open('#/flame?cost=peak_bytes');
    const source = fs.readFileSync(path.join(import.meta.dirname, 'leaky.c'), 'utf8').split('\n');
    const box = await page.getByTestId('flame-box').boundingBox();
    for (const [row, name, call] of [[1, 'main', /(parse_request|remember_client|fill_cache)\(.*\);/], [2, 'fill_cache', /my_alloc\(1 << 20\)/]]) {
      await page.mouse.move(box.x + 40, box.y + row * 20 + 10);
      const tip = page.locator('.flame-tip', { hasText: new RegExp(`^${name}leaky`) });
      await tip.waitFor();
      const [title, place, module, peak] = await tip.locator('div').allInnerTexts();
      assert.equal(title, name);
      assert.match(source[Number(/^leaky\.c:(\d+)$/.exec(place)[1]) - 1], call);
      assert.ok(module.endsWith('/leaky'), module);
      assert.match(peak, /^Peak: 8\.\d\d MiB \([\d,]+ B\), \d+(\.\d)?%$/);
    }
  });
});

describe('Leaks', () => {
  it('opens by call site, with the history and the stacks of a row', async () => {
    await viewer.open('#/leaks');
    assert.equal(await page.getByRole('button', { name: 'by call site' }).getAttribute('aria-pressed'), 'true');
    const { leaks, history, history_parts: parts } = await viewer.ask('leaks?by=call_site');
    assert.equal(history.length, leaks.count * parts);
    // It grew all the time: no part is below the one before, and the last is the highest.
    const own = history.slice(0, parts);
    assert.deepEqual(own, [...own].sort((a, b) => a - b));
    assert.equal(own.at(-1), 100);
    assert.equal(await page.locator('.table .spark').count(), leaks.count);
    assert.match(await page.getByLabel('Frames, innermost first').innerText(), /my_alloc[^]*remember_client/);
  });
});

describe('the context menu', () => {
  it('of a row focuses, hides and merges, by keys alone', async () => {
    await viewer.open('#/bottom-up');
    const tree = await viewer.table('Bottom-up tree');
    await page.keyboard.press('ArrowDown');
    const name = (await tree.locator('.table-selected .code').getAttribute('title')).split('\n')[0];
    for (const [label, field] of someOf([['Hide', 'ignore'], ['Focus', 'focus'], ['Show from here', 'show_from']], 3)) {
      await viewer.open('#/bottom-up');
      await viewer.table('Bottom-up tree');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Shift+F10');
      await page.getByRole('menu').waitFor();
      while (!(await page.getByRole('menuitem', { name: label, exact: true }).evaluate((item) => item === document.activeElement))) {
        await page.keyboard.press('ArrowDown');
      }
      await page.keyboard.press('Enter');
      await page.getByRole('menu').waitFor({ state: 'detached' });
      await viewer.idle();
      assert.equal(viewer.parameters().get(field), `^${name}$`);
      const names = (await viewer.rows('Bottom-up tree')).map((row) => row.name);
      assert.equal(names.includes(name), field !== 'ignore', `${label}: ${names}`);
    }
    await viewer.open('#/bottom-up');
    await tree.locator('.table-body [role=row]').first().click({ button: 'right' });
    await page.keyboard.press('Escape');
    assert.equal(await page.getByRole('menu').count(), 0);
  });

  it('of a frame copies the path to it', async () => {
    await stage.session.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: viewer.url.origin });
    await viewer.open('#/flame');
    await page.locator('.flame-canvas').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Shift+F10']) {
      await page.keyboard.press(key);
    }
    const title = await page.locator('.code-menu-title').innerText();
    await page.getByRole('menuitem', { name: 'Copy the path' }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.split('\n').at(-1).includes(title), `${copied} / ${title}`);
    assert.match(copied, /^.*main/);
  });
});

describe('a table', () => {
  it('finds a text in rows that are out of sight, onwards and back', async () => {
    await crowded.open('#/leaks?leaks_by=block');
    const field = crowded.page.getByLabel('Find in Single blocks');
    await field.fill('keep');
    await crowded.page.keyboard.press('Enter');
    await crowded.page.keyboard.press('Enter');
    assert.match(await crowded.page.locator('.table-find').innerText(), /^2 of 50/);
    await crowded.page.keyboard.press('Shift+Enter');
    assert.match(await crowded.page.locator('.table-find').innerText(), /^1 of 50/);
    assert.match(await crowded.page.locator('.table-selected').innerText(), /keep/);
  });
});

describe('single blocks', () => {
  it('have addresses, sizes and call sites, each of the fifty once', async () => {
    await crowded.open('#/leaks?leaks_by=block');
    const { end } = await crowded.ask('blocks');
    const own = end.size_bytes.flatMap((size, row) => (size === 3000 ? [end.address[row]] : []));
    assert.equal(new Set(own).size, 50);
    const shown = (await crowded.rows('Single blocks')).filter((row) => row.cells[1] === '2.93 KiB');
    assert.ok(shown.length >= 10 && shown.every((row) => /^0x[0-9a-f]+$/.test(row.cells[0]) && row.name === 'keep'), JSON.stringify(shown[0]));
  });

  it('are not offered for a recording that lists none', async () => {
    await viewer.open('#/leaks');
    assert.equal(await page.getByRole('button', { name: 'single blocks' }).count(), 0);
  });
});

describe('mappings', () => {
  /** The sums of columns of the open table, as it is saved. */
  const sumsOf = async (label) => {
    const button = unseen.page.getByRole('button', { name: `${label} as CSV`, exact: true });
    const [heads, ...rows] = readCsv((await unseen.download(button)).bytes.toString('utf8'));
    return ['RSS (bytes)', 'Virtual (bytes)', 'Areas'].map((head) => rows.reduce((sum, row) => sum + Number(row[heads.indexOf(head)]), 0));
  };

  it('are added up by owner, and the sum is that of each', async () => {
    await unseen.open('#/rss');
    const rows = await unseen.rows('Mappings by owner');
    assert.match(rows[0].cells.join(' '), /^24\.\d MiB.*main/);
    const byOwner = await sumsOf('Mappings by owner');
    await unseen.page.getByRole('button', { name: 'each', exact: true }).click();
    await unseen.idle();
    assert.deepEqual(await sumsOf('Mappings'), byOwner);
    assert.ok(byOwner[0] > 24 << 20);
  });

  it('lead from an owner to its callers', async () => {
    await unseen.open('#/rss');
    await unseen.page.getByLabel('Mappings by owner').locator('.table-body [role=row]').first().locator('button.code-name').click();
    await unseen.idle();
    assert.equal(await unseen.page.locator('main').getAttribute('data-view'), 'functions');
    assert.match(unseen.parameters().get('fn'), /main/);
  });
});

describe('a program without debug information', () => {
  it('is said to have no lines, and how to get them', async () => {
    await unseen.open('#/source?cost=allocations');
    const said = await unseen.text('uncovered');
    assert.match(said, /^\d+(\.\d+)?% of Allocations .* has no source lines: /);
    assert.match(said, /-g/);
    await viewer.open('#/source?cost=allocations');
    assert.equal(await page.getByTestId('uncovered').count(), 0);
  });
});

describe('two ranges of one recording', () => {
  it('are brushed one after the other, and every view compares them', async () => {
    await viewer.open('#/bottom-up?cost=allocations');
    const strip = await page.getByTestId('time-strip').boundingBox();
    const drag = async (from, to) => {
      await page.mouse.move(strip.x + strip.width * from, strip.y + 10);
      await page.mouse.down();
      await page.mouse.move(strip.x + strip.width * to, strip.y + 10, { steps: 4 });
      await page.mouse.up();
      await viewer.idle();
    };
    await drag(0.55, 0.95);
    await page.getByRole('button', { name: 'Compare with another range' }).click();
    await drag(0.05, 0.45);
    const chosen = Object.fromEntries(['from_ms', 'to_ms', 'old_from_ms', 'old_to_ms', 'diff'].map((field) => [field, viewer.parameters().get(field)]));
    assert.equal(chosen.diff, '1');
    assert.ok(Number(chosen.old_to_ms) < Number(chosen.from_ms), JSON.stringify(chosen));
    assert.equal(await page.getByTestId('time-range-old').count(), 1);
    assert.match(await viewer.text('verdict'), /^Compared with [^:]+: /);

    const totals = async (from, to) => (await viewer.ask(`summary?from_ms=${from}&to_ms=${to}`)).selection.totals;
    const [now, before] = [await totals(chosen.from_ms, chosen.to_ms), await totals(chosen.old_from_ms, chosen.old_to_ms)];
    const { selection } = await viewer.ask(`summary?${new URLSearchParams(chosen)}`);
    assert.deepEqual([selection.totals, selection.baseline_totals], [now, before]);
    assert.ok(before.allocations > 0 && now.allocations > 0);
    const rows = (await viewer.rows('Bottom-up tree')).filter((row) => row.level === 1);
    const title = new RegExp(`^Allocations: ([\\d,]+)\nbefore: ([\\d,]+)`);
    const figures = rows.map((row) => row.costs.map((cost) => title.exec(cost)).find((found) => found !== null)).map((found) => found.slice(1, 3).map((text) => Number(text.replaceAll(',', ''))));
    assert.deepEqual(figures.reduce((sum, [own, old]) => [sum[0] + own, sum[1] + old], [0, 0]), [now.allocations, before.allocations]);

    for (const view of someOf(['summary', 'functions', 'flame', 'leaks', 'threads', 'charts', 'sizes', 'rss', 'peak'], 4)) {
      await page.getByTestId(`tab-${view}`).click();
      await viewer.idle();
      assert.equal(await page.getByRole('alert').count(), 0, view);
    }
    await page.getByRole('button', { name: 'Stop comparing' }).first().click();
    await viewer.idle();
    assert.equal(viewer.parameters().get('diff'), null);
    assert.equal(viewer.parameters().get('old_to_ms'), null);
    assert.equal(viewer.parameters().get('from_ms'), chosen.from_ms);
  });
});
