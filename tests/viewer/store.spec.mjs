// SPDX-License-Identifier: MIT
// The page of `cairn analyze --store`: recordings, what the store answers, and the viewer of one recording.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { describe, it } from 'node:test';
import { recordLeaky, recordWorkload, report, withStage } from './support.mjs';

let place, older, newer, viewer, page;
const store = (...words) => execFileSync(process.env.CAIRN_BIN, ['store', ...words, '--store', place], { encoding: 'utf8' });
const asked = (...words) => JSON.parse(store(...words, '--json')).rows;
const stage = withStage(async () => {
  place = path.join(stage.folder, 'store.db');
  older = recordWorkload(stage.folder, 'older.cairn');
  newer = recordLeaky(stage.folder);
  store('add', older, '--service', 'web', '--version', '1.0', '--host', 'node1');
  store('add', newer, '--service', 'web', '--version', '1.1', '--host', '<img src=x onerror=alert(1)>');
  ({ viewer, page } = await stage.open([], [`--store=${place}`]));
});

/** The texts of the cells of the shown table, row by row. */
async function cells(label) {
  const table = page.getByRole('table', { name: label, exact: true });
  await table.waitFor();
  return table.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.getAttribute('title') ?? cell.textContent)));
}

async function ask(label) {
  await page.getByRole('button', { name: label, exact: true }).click();
  await viewer.idle();
}

describe('the store', () => {
  it('lists its recordings, newest first, and hostile names as text', async () => {
    await viewer.open('#/store');
    const rows = await cells('Recordings');
    assert.deepEqual(rows.map((row) => row.slice(0, 3)), asked('list').map((row) => [row.service, row.version, row.host]));
    assert.equal(rows.length, 2);
    assert.equal(await page.locator('img').count(), 0);
  });

  for (const [label, ...words] of [['Top', 'top'], ['Growth', 'query', 'growth', '1.0', '1.1'], ['Changes', 'diff', '1.0', '1.1'], ['Hosts', 'query', 'hosts'], ['Out of memory', 'query', 'oom']]) {
    it(`answers as the command does: ${label}`, async () => {
      await viewer.open('#/store');
      await ask(label);
      const expected = asked(...words, '-n', '1000').map((row) => Object.values(row).map((value) => String(value ?? '')));
      if (expected.length === 0) {
        assert.ok(await page.getByText('The store has nothing that matches.').isVisible());
      } else {
        assert.deepEqual(await cells(label), expected);
      }
      await page.reload();
      await viewer.idle();
      assert.equal(await page.getByRole('button', { name: label, exact: true }).getAttribute('aria-current'), 'page');
    });
  }

  it('has growth to show', () => {
    assert.ok(asked('query', 'growth', '1.0', '1.1').length > 0);
  });

  it('shows the history of a function, of the chosen cost', async () => {
    await viewer.open('#/store');
    await ask('History');
    assert.ok(await page.getByText('Name a function.').isVisible());
    await page.getByLabel('Function').fill('churn(int)');
    await page.getByRole('button', { name: 'Ask' }).click();
    await page.getByLabel('Cost').selectOption('allocations');
    await viewer.idle();
    const rows = await cells('History');
    assert.deepEqual(rows.map((row) => Number(row[3])), asked('query', 'history', 'churn(int)', '--cost', 'allocations').map((row) => row.cost_allocations));
    assert.ok(rows.every((row) => Number(row[3]) >= 20_000));
  });

  it('chooses a host', async () => {
    await viewer.open('#/store');
    await page.getByLabel('Host').selectOption('node1');
    await viewer.idle();
    assert.deepEqual((await cells('Recordings')).map((row) => row[2]), ['node1']);
  });

  it('opens a recording, and comes back', async () => {
    await viewer.open('#/store');
    await page.getByRole('row', { name: /node1/ }).getByRole('button', { name: 'Open' }).click();
    await page.waitForSelector('main[data-view="summary"]');
    await viewer.idle();
    assert.equal(await page.locator('.head-file').innerText(), 'older.cairn');
    assert.match(await page.locator('[data-testid="top-peak_bytes"] .top-cost').first().getAttribute('title'), new RegExp(`\\(${report(older).top.peak_bytes[0].costs.peak_bytes.toLocaleString('en-US')} B\\)`));
    await page.goBack();
    await page.waitForSelector('main[data-view="store"]');
    assert.equal((await cells('Recordings')).length, 2);
  });
});
