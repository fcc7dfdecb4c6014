// SPDX-License-Identifier: MIT
// Tables leave the page: as CSV and TSV with the exact numbers of `cairn report --json`, and on paper with all of their rows.
// Processes have their lives, and lifetimes a scale on which all of them can be seen.
import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { itAtNight, readCsv, recordFamily, recordWorkload, report, someOf, withStage } from './support.mjs';

let file, family, reported, viewer, page;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
  family = recordFamily(stage.folder, 'family.cairn');
  reported = report(file);
  ({ viewer, page } = await stage.open(file));
});

async function saved(label, format) {
  const { name, bytes } = await viewer.download(page.getByRole('button', { name: `${label} as ${format}`, exact: true }));
  return { name, text: bytes.toString('utf8') };
}

describe('a table as a file', () => {
  it('has the exact numbers and whole names', async () => {
    await viewer.open('#/leaks?leaks_by=call_site');
    const { name, text } = await saved('Leaks', 'CSV');
    assert.equal(name, 'workload-leaks.csv');
    const [heads, ...rows] = readCsv(text);
    assert.deepEqual(heads.slice(0, 3), ['Call site', 'Leaked (bytes)', 'Leaked blocks']);
    assert.deepEqual(rows.map((row) => Number(row[1])), reported.top.live_bytes.map((site) => site.costs.live_bytes));
    assert.ok(rows.some((row) => /^leak_receipt\(\) workload\.cpp:\d+$/.test(row[0])), text);
  });

  it('separates by tabs, too', async () => {
    await viewer.open('#/functions?wrappers=1&cost=allocations');
    const { name, text } = await saved('Functions', 'TSV');
    assert.equal(name, 'workload-functions.tsv');
    const rows = text.trimEnd().split('\n').map((line) => line.split('\t'));
    assert.ok(rows.every((row) => row.length === rows[0].length));
    assert.equal(Number(rows.find((row) => row[0] === 'churn(int)')[3]), 20_000);
  });

  it('has the rows of a tree that are open, with their level', async () => {
    await viewer.open('#/top-down');
    const shown = await viewer.rows('Top-down tree');
    const [heads, ...rows] = readCsv((await saved('Top-down tree', 'CSV')).text);
    assert.equal(heads[0], 'Level');
    assert.deepEqual(rows.map((row) => Number(row[0]) + 1), shown.map((row) => row.level));
  });
});

describe('on paper', () => {
  it('is light, without controls, and has all rows of a table', async () => {
    await page.setViewportSize({ width: 1000, height: 500 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await viewer.open('#/sizes');
    const rows = () => page.locator('[aria-label=Buckets] .table-body [role=row]').count();
    const count = Number(await page.locator('[aria-label=Buckets]').getAttribute('aria-rowcount')) - 1;
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await page.waitForFunction((wanted) => document.querySelectorAll('[aria-label=Buckets] .table-body [role=row]').length === wanted, count);
    assert.equal(await rows(), count);
    const look = await page.evaluate(() => ({
      background: getComputedStyle(document.body).backgroundColor,
      hidden: ['.tabs', '.filter-form', '.toolbar'].map((selector) => getComputedStyle(document.querySelector(selector)).display),
      cut: [...document.querySelectorAll('main, .table')].some((box) => box.scrollHeight > box.clientHeight + 2),
    }));
    assert.deepEqual(look, { background: 'rgb(255, 255, 255)', hidden: ['none', 'none', 'none'], cut: false });
    await page.emulateMedia({ media: 'screen', colorScheme: 'light' });
    await page.setViewportSize({ width: 1280, height: 800 });
  });
});

describe('lives', () => {
  it('of processes are a tree with bars, which filter', async () => {
    const own = await stage.open(family);
    await own.viewer.open('#/threads');
    const lives = await own.page.locator('.life').evaluateAll((all) => all.map((life) => ({
      isProcess: life.classList.contains('life-process'),
      label: life.querySelector('.link').textContent,
      indent: Number.parseFloat(life.querySelector('.life-name').style.paddingLeft),
    })));
    const { processes } = report(family);
    const shell = processes.find((process) => !processes.some((other) => other.pid === process.parent_pid));
    assert.deepEqual(lives.filter((life) => life.isProcess).map((life) => life.indent), [0, 14, 14]);
    assert.ok(lives[0].label.endsWith(`(${shell.pid})`), JSON.stringify(lives));
    const child = processes.find((process) => process.parent_pid === shell.pid);
    await own.page.locator('.life-bar').nth(1).click();
    await own.viewer.idle();
    assert.ok(Math.abs(Number(own.viewer.parameters().get('from_ms')) - child.start_ms) <= processes.at(-1).start_ms + 1);
    await own.viewer.follow('#/threads');
    await own.page.locator('.life .link').nth(1).click();
    await own.viewer.idle();
    assert.ok(processes.some((process) => String(process.pid) === own.viewer.parameters().get('process') && process !== shell));
  });
});

describe('histograms', () => {
  it('have a scale for their heights', async () => {
    await viewer.open('#/sizes?rank=bytes');
    const labels = await page.locator('.bars-y span').evaluateAll((all) => all.map((label) => [label.textContent, Number.parseFloat(label.style.bottom)]));
    const { buckets } = await viewer.ask('sizes');
    const most = Math.max(...buckets.bytes);
    assert.ok(labels.length >= 3, JSON.stringify(labels));
    for (const [text, bottom] of labels) {
      const [, figure, unit] = /^([\d.]+) ([KM]?i?B)$/.exec(text);
      const bytes = Number(figure) * { B: 1, KiB: 1024, MiB: 1024 ** 2 }[unit];
      assert.ok(Math.abs((bytes / most) * 100 - bottom) < 0.5, text);
    }
  });
});

describe('lifetimes', () => {
  it('are on a logarithmic scale, unless it is turned off', async () => {
    const heights = () => page.locator('.bars g').evaluateAll((bars) => bars.map((bar) => [...bar.querySelectorAll('rect:not(.bars-hover)')].reduce((sum, part) => sum + Number(part.getAttribute('height')), 0)));
    await viewer.open('#/sizes?histogram=lifetimes');
    const { buckets } = await viewer.ask('lifetimes');
    const most = Math.max(...buckets.blocks);
    const logarithmic = await heights();
    buckets.blocks.forEach((blocks, i) => assert.ok(Math.abs(logarithmic[i] / 320 - Math.log1p(blocks) / Math.log1p(most)) < 0.001, String(i)));
    await page.getByRole('button', { name: 'Log scale' }).click();
    await viewer.idle();
    const linear = await heights();
    buckets.blocks.forEach((blocks, i) => assert.ok(Math.abs(linear[i] / 320 - blocks / most) < 0.001, String(i)));
    assert.equal(viewer.parameters().get('scale'), 'linear');
  });
});

describe('a sampled recording', () => {
  it('shows the error of each call site, as the report states it', async () => {
    const sampled = recordWorkload(stage.folder, 'sampled.cairn', [], ['--sample=4KiB']);
    const { viewer: other } = await stage.open(sampled);
    const shares = (cost) => report(sampled).top[cost].map(({ costs, errors }) => `±${Math.min((errors[cost] / costs[cost]) * 100, 999).toFixed(0)}%`);
    for (const cost of ['live_bytes', 'live_blocks']) {
      assert.ok((report(sampled).top.live_bytes ?? []).every((site) => site.errors[cost] > 0), cost);
    }
    await other.open('#/summary');
    const shown = await other.page.locator('[data-testid="top-allocations"] .top-error').allTextContents();
    assert.ok(shown.length > 1);
    assert.deepEqual(shown, shares('allocations').slice(0, shown.length));
    await other.open('#/leaks?leaks_by=call_site');
    const errors = await other.page.locator('[role="row"] .cost-error').allTextContents();
    assert.deepEqual(errors.filter((_, i) => i % 2 === 0), shares('live_bytes'));
  });

  it('shows the errors of functions and of trees', async () => {
    const sampled = recordWorkload(stage.folder, 'trees.cairn', [], ['--sample=4KiB']);
    const { viewer: other } = await stage.open(sampled);
    const share = (errors, costs) => (errors > 0 ? `±${Math.min((errors / costs) * 100, 999).toFixed(0)}%` : '');
    const shown = async () => (await other.page.locator('[role="row"] .cost-error').allTextContents()).sort();
    const { functions } = report(sampled, ['--functions', '--sort', 'allocations', '-n', '8']).functions; // are in view
    const expected = new Set(functions.map(({ inclusive, inclusive_errors }) => share(inclusive_errors.allocations, inclusive.allocations)));
    await other.open('#/functions?cost=allocations&wrappers=1');
    const texts = await shown();
    assert.ok([...expected].every((text) => texts.includes(text)), `${[...expected]} in ${texts}`);
    for (const view of ['top-down', 'bottom-up', 'threads']) {
      await other.follow(`#/${view}?cost=allocations`);
      assert.ok((await shown()).some((text) => /^±\d+%$/.test(text)), view);
    }
  });

  itAtNight('shows the errors of source lines, frames, buckets and findings', async () => {
    const sampled = recordWorkload(stage.folder, 'everywhere.cairn', [], ['--sample=4KiB']);
    const { viewer: other } = await stage.open(sampled);
    const share = (error, value) => (value > 0 && error > 0 ? `±${Math.min((error / value) * 100, 999).toFixed(0)}%` : '');
    const errors = (label) => other.page.getByLabel(label, { exact: true }).locator('[role="row"] .cost-error').allTextContents();
    const file = path.join(import.meta.dirname, 'workload.cpp');
    await other.open('#/source');
    const { lines } = await other.ask(`source?costs=allocations&file_path=${encodeURIComponent(file)}`);
    await other.open(`#/source?cost=allocations&path=${encodeURIComponent(file)}&line=${lines.line[lines.self.allocations.findIndex((value) => value > 0)]}`);
    const ofLines = lines.line.flatMap((_, row) => [share(lines.self_errors.allocations[row], lines.self.allocations[row]), share(lines.inclusive_errors.allocations[row], lines.inclusive.allocations[row])]).filter((text) => text !== '');
    const shownLines = (await errors(`Source ${file}`)).filter((text) => text !== '');
    assert.ok(shownLines.length > 1 && shownLines.every((text) => ofLines.includes(text)), `${shownLines} of ${ofLines}`);
    assert.ok((await errors('Files')).some((text) => /^±\d+%$/.test(text)));

    await other.open('#/flame?cost=allocations&search=churn');
    const { nodes, search } = await other.ask('tree?costs=all&sort=allocations&search=churn&hide_wrappers=1');
    assert.ok((await other.text('flame-status')).includes(share(nodes.total_errors.allocations[0], nodes.total.allocations[0])));
    assert.ok((await other.text('flame-match')).includes(` ${share(search.totals_errors.allocations, search.totals.allocations)}, `));
    await other.page.locator('.flame-canvas').hover({ position: { x: 40, y: 8 } });
    const tip = await other.page.locator('.flame-tip').innerText();
    assert.match(tip, /Allocations: [\d,]+ ±\d+%, 100%/);

    for (const kind of ['sizes', 'lifetimes']) {
      await other.open(`#/sizes?histogram=${kind}`);
      const { buckets } = await other.ask(kind);
      const wanted = buckets.blocks.flatMap((blocks, row) => [share(buckets.blocks_error[row], blocks), share(buckets.bytes_error[row], buckets.bytes[row])]);
      const shown = await errors('Buckets');
      assert.ok(shown.length > 2);
      assert.deepEqual(shown, wanted.slice(0, shown.length), kind);
      assert.match(await other.page.locator('.bars g title').first().evaluate((title) => title.textContent), /blocks? ±\d+%, .* ±\d+%$/);
    }
    await other.open('#/summary');
    const { totals, totals_errors: ofTotals } = report(sampled).selection;
    assert.ok((await other.text('figure-allocations')).endsWith(` ${share(ofTotals.allocations, totals.allocations)}`));
    for (const finding of report(sampled).findings.items.filter((one) => one.bytes_error > 0)) {
      assert.match(finding.sentence, /±\d+%/);
    }
  });

  it('shows the error of each change in a comparison', async () => {
    const old = recordWorkload(stage.folder, 'before.cairn', [], ['--sample=4KiB']);
    const now = recordWorkload(stage.folder, 'after.cairn', ['more'], ['--sample=4KiB']);
    const { viewer: other } = await stage.open(now, ['--diff', old]);
    for (const view of someOf(['functions', 'top-down', 'leaks', 'threads'], 2)) {
      await other.open(`#/${view}?diff=1&cost=live_bytes`);
      await other.page.locator('[role="row"] .cost-error').first().waitFor();
      const cells = await other.page.locator('[role="row"] .cost:has(.cost-error:not(:empty))').evaluateAll((all) => all.map((cell) => cell.title));
      assert.ok(cells.length > 0 && cells.every((title) => /change: .* ± .* in 95 of 100 cases/.test(title)), `${view}: ${cells[0]}`);
    }
  });

  it('has none if every block was recorded', async () => {
    await viewer.open('#/leaks?leaks_by=call_site');
    assert.ok((await viewer.rows('Leaks')).length > 0);
    assert.equal(await page.locator('.cost-error, .top-error').count(), 0);
  });
});
