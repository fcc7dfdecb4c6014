// SPDX-License-Identifier: MIT
// The source view: a file of the recorded program, found on this machine, with what its lines cost.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { exactNumber, recordSource, recordWorkload, report, withStage } from './support.mjs';

const SOURCE = path.join(import.meta.dirname, 'workload.cpp');
const EDITOR = 'x-edit://open?file=%f&line=%l';

let file, server, viewer, page, reported;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
  reported = report(file);
  ({ server, viewer, page } = await stage.open(file, [`--editor=${EDITOR}`]));
});

/** Line number of the only line with `text`. */
function lineWith(text) {
  const lines = fs.readFileSync(SOURCE, 'utf8').split('\n');
  const found = lines.flatMap((line, i) => (line.includes(text) ? [i + 1] : []));
  assert.equal(found.length, 1, text);
  return found[0];
}

/** Allocations of all stacks that pass through a line of the workload, and of those that end there. */
function costOfLine(line) {
  const cost = { self: 0, inclusive: 0 };
  for (const stack of reported.top.allocations.flatMap((site) => site.stacks)) {
    const isOn = (frame) => frame?.line === line && frame.file?.endsWith('workload.cpp') === true;
    cost.self += isOn(stack.frames[0]) ? stack.costs.allocations : 0;
    cost.inclusive += stack.frames.some(isOn) ? stack.costs.allocations : 0;
  }
  return cost;
}

const LINES = ['malloc(4000)', 'malloc(64)', 'malloc(2000)', 'malloc(333)', 'churn(2000);'];

describe('the source view', () => {
  it('is reached from the lines of a function, at that line', async () => {
    await viewer.open('#/functions?cost=allocations&fn=churn(int)');
    await page.getByLabel('Source lines', { exact: true }).getByRole('button').first().click();
    await viewer.idle();
    assert.equal(await page.locator('main').getAttribute('data-view'), 'source');
    assert.equal(viewer.parameters().get('path'), SOURCE);
    const selected = await page.locator('.table-selected .source-text').innerText();
    assert.match(selected, /malloc\(64\)/);
  });

  for (const text of LINES) {
    it(`the line with ${text} has the costs of the stacks through it`, async () => {
      const line = lineWith(text);
      const wanted = costOfLine(line);
      assert.ok(wanted.inclusive > 0, text);
      await viewer.open(`#/source?path=${encodeURIComponent(SOURCE)}&line=${line}&cost=allocations`);
      const row = (await viewer.rows(`Source ${SOURCE}`)).find((candidate) => candidate.cells[2] === String(line));
      assert.ok(row.cells[3].includes(text), row.cells[3]);
      const [self, inclusive] = row.costs.map(exactNumber);
      assert.deepEqual({ self, inclusive }, wanted);
    });
  }

  it('opened from a leak shows the leaked bytes of its line, in the middle', async () => {
    await viewer.open('#/leaks?function=leak_receipt');
    await page.locator('.stack .code-links').filter({ hasText: `workload.cpp:${lineWith('malloc(1000)')}` }).getByRole('button').click();
    await viewer.idle();
    assert.equal(viewer.parameters().get('cost'), 'live_bytes');
    assert.match(await page.locator('.table-selected .source-text').innerText(), /malloc\(1000\)/);
    const [row, table] = await Promise.all([page.locator('.source-file .table-selected').boundingBox(), page.locator('.source-file .table').boundingBox()]);
    const middle = (row.y + row.height / 2 - table.y) / table.height;
    assert.ok(middle > 0.25 && middle < 0.75, String(middle));
    const link = page.locator('.source-file a').filter({ hasText: 'edit' });
    assert.equal(await link.getAttribute('href'), `x-edit://open?file=${encodeURIComponent(SOURCE).replaceAll('%2F', '/')}&line=${lineWith('malloc(1000)')}`);
  });

  for (const [place, cost, text] of [['top-allocations', 'allocations', 'malloc(64)'], ['finding-peak', null, 'malloc(4000)']]) {
    it(`is reached from ${place} of the first page`, async () => {
      await viewer.open('#/summary');
      await page.getByTestId(place).locator('.code-place').getByRole('button').first().click();
      await viewer.idle();
      assert.equal(viewer.parameters().get('cost'), cost);
      assert.ok((await page.locator('.table-selected .source-text').innerText()).includes(text));
    });
  }

  it('shows the file as it is, and no cost where there is none', async () => {
    await viewer.open(`#/source?path=${encodeURIComponent(SOURCE)}&line=1&cost=allocations`);
    const lines = fs.readFileSync(SOURCE, 'utf8').split('\n');
    const rows = await viewer.rows(`Source ${SOURCE}`);
    assert.ok(rows.length > 20);
    for (const row of rows) {
      assert.equal(row.cells[3], lines[Number(row.cells[2]) - 1]);
    }
    assert.deepEqual(rows.find((row) => row.cells[2] === '2').costs, []);
  });

  it('begins with the costliest line of the costliest file', async () => {
    await viewer.open('#/source?cost=allocations');
    const { lines } = await viewer.ask(`source?costs=allocations&file_path=${encodeURIComponent(SOURCE)}`);
    const most = Math.max(...lines.self.allocations);
    const selected = page.locator(`[aria-label="Source ${SOURCE}"] .table-selected .source-line`);
    assert.equal(await selected.innerText(), String(lines.line[lines.self.allocations.indexOf(most)]));
  });

  it('begins with the costliest call site where operator new is the innermost frame', async () => {
    const { page: own, viewer: fresh } = await stage.open(recordSource(stage.folder, 'sites.cpp'));
    await fresh.open('#/source?cost=allocations');
    assert.match(await own.locator('.source-file .table-selected .source-text').innerText(), /new char\[1000\]/);
  });

  it('lists the files by the cost of their call sites, and opens them', async () => {
    await viewer.open('#/source?cost=allocations');
    const files = await viewer.rows('Files');
    const sums = new Map();
    for (const site of reported.top.allocations) {
      sums.set(site.file, (sums.get(site.file) ?? 0) + site.costs.allocations);
    }
    const wanted = [...sums].filter(([file, sum]) => file !== '' && sum > 0).sort((a, b) => b[1] - a[1]);
    assert.deepEqual(files.map((row) => exactNumber(row.costs[0])), wanted.map(([, sum]) => sum));
    await page.locator('[aria-label=Files] .table-body [role=row]').filter({ hasText: 'workload.cpp' }).click();
    await viewer.idle();
    assert.equal(viewer.parameters().get('path'), SOURCE);
    assert.ok((await viewer.rows(`Source ${SOURCE}`)).length > 10);
  });

  it('is hottest where most of the file passes through', async () => {
    await viewer.open(`#/source?path=${encodeURIComponent(SOURCE)}&line=${lineWith('malloc(64)')}&cost=allocations`);
    const heat = await page.locator('.table-selected .source-text').evaluate((text) => text.getAttribute('style'));
    const cold = await page.locator('.source-text').first().evaluate((text) => text.getAttribute('style'));
    assert.match(heat, /var\(--heat\) [5-9]\d|100/);
    assert.match(cold, /var\(--heat\) 0/);
  });

  it('obeys the filter', async () => {
    const line = lineWith('malloc(64)');
    await viewer.open(`#/source?path=${encodeURIComponent(SOURCE)}&line=${line}&cost=allocations&function=keep_cache`);
    const row = (await viewer.rows(`Source ${SOURCE}`)).find((candidate) => candidate.cells[2] === String(line));
    assert.ok(row.costs.every((title) => exactNumber(title) === 0), JSON.stringify(row.costs));
  });

  it('says why a file cannot be shown', async () => {
    const other = await stage.view(server);
    await other.open('#/source?path=%2Fetc%2Fpasswd');
    const said = await other.page.locator('main .notice').first().innerText();
    assert.match(said, /^Source: /);
    assert.doesNotMatch(await other.page.locator('main').innerText(), /root:/);
    await other.page.close();
  });
});

describe('links to an editor', () => {
  it('have the file and the line, escaped', async () => {
    await viewer.open('#/leaks?function=leak_receipt');
    const link = page.locator('.stack a').filter({ hasText: 'edit' }).first();
    const line = lineWith('malloc(1000)');
    assert.equal(await link.getAttribute('href'), `x-edit://open?file=${encodeURIComponent(SOURCE).replaceAll('%2F', '/')}&line=${line}`);
  });
});
