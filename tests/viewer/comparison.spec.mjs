// SPDX-License-Identifier: MIT
// Two recordings, old and new: every table and the flame graph show both and the change.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { compared, comparedNumbers, exactNumber, humanBytes, humanCount, readSvg, recordWorkload, report, serve, withStage } from './support.mjs';

let file, changed, viewer, page;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'old.cairn');
  changed = recordWorkload(stage.folder, 'new.cairn', ['more']);
  ({ viewer, page } = await stage.open(file));
});

describe('comparison', () => {
  let other, diff;
  before(async () => {
    other = await serve(changed, ['--diff', file]);
    diff = await stage.view(other);
  });
  after(async () => {
    await diff?.page.close();
    await other?.stop();
    assert.deepEqual(diff?.complaints, []);
  });

  it('shows the change in the functions', async () => {
    await diff.open('#/functions?diff=1&cost=live_bytes');
    const row = (await diff.rows('Functions')).find((candidate) => candidate.name === 'leak_receipt()');
    assert.ok(row !== undefined);
    assert.equal(exactNumber(row.costs[1]), 75_000);
    assert.match(row.costs[1], /before: 48\.8 KiB \(50,000 B\)/);
    assert.match(row.cells.join(' '), /\+24\.4 KiB/);
  });

  for (const view of ['summary', 'peak', 'bottom-up', 'functions', 'top-down', 'flame', 'charts', 'sizes', 'leaks', 'threads', 'rss', 'source']) {
    it(`says in ${view} what grew`, async () => {
      await diff.follow(`#/${view}?diff=1`);
      const said = await diff.text('verdict');
      assert.match(said, /^Compared with old\.cairn: grew beyond 1%: .*leaked \+24\.4 KiB \(\+50\.0%\)\./);
      assert.ok((await diff.page.locator('.time-old').getAttribute('d')).length > 20);
    });
  }

  it('compares the lines of a source file', async () => {
    const site = report(changed).top.live_bytes.find((candidate) => candidate.function.startsWith('leak_receipt'));
    await diff.open(`#/source?path=${encodeURIComponent(site.file)}&line=${site.line}&diff=1&cost=live_bytes`);
    const row = (await diff.rows(`Source ${site.file}`)).find((candidate) => candidate.cells[2] === String(site.line));
    assert.equal(exactNumber(row.costs[0]), 75_000);
    assert.match(row.costs[0], /before: 48\.8 KiB \(50,000 B\)/);
    assert.match(await diff.page.locator('main').innerText(), /Lines with the same number are compared/);
  });

  it('lists the call sites that changed most, and both resident sizes', async () => {
    await diff.open('#/summary?diff=1');
    const first = diff.page.getByTestId('top-live_bytes').locator('li').first();
    assert.match(await first.innerText(), /^\+24\.4 KiB\s*leak_receipt/);
    assert.match(await first.getAttribute('title'), /before: 48\.8 KiB \(50,000 B\)\nnow: 73\.2 KiB \(75,000 B\)/);
    assert.match(await diff.text('rss-bar-old'), /^Before: /);
    await diff.follow('#/peak?diff=1');
    assert.match(await diff.text('peak-before'), /^Before, the heap rose /);
  });

  it('opens with what became of each finding, as `cairn diff` says it', async () => {
    await diff.open('#/summary?diff=1');
    const wanted = compared(file, changed).finding_changes;
    assert.ok(wanted.some((one) => one.class === 'grown') && wanted.length >= 2, JSON.stringify(wanted));
    const said = (text) => text.replace(/\s+/g, ' ');
    const cards = await diff.page.locator('.card').evaluateAll((all) => all.map((card) => ({
      id: card.dataset.testid, verdict: card.querySelector('.card-verdict').textContent,
      figure: card.querySelector('.card-figure').textContent, sentence: card.querySelector('.card-sentence').textContent,
    })));
    const text = (bytes) => (bytes === null ? 'none' : humanBytes(bytes));
    const change = (one) => (one.change === null ? text(one.new ?? one.old) : `${one.change < 0 ? '-' : one.change > 0 ? '+' : ''}${humanBytes(Math.abs(one.change))}`);
    assert.deepEqual(cards.map((card) => ({ ...card, sentence: said(card.sentence) })), wanted.map((one) => ({
      id: `finding-${one.kind}`, verdict: one.class,
      figure: `${change(one)}${text(one.old)} before, ${text(one.new)} now`,
      sentence: said(`${one.class === 'gone' ? 'Was: ' : ''}${one.sentence}`),
    })));
  });

  it('begins tables with the largest change', async () => {
    await diff.open('#/bottom-up?diff=1&cost=allocated_bytes');
    assert.equal((await diff.rows('Bottom-up tree'))[0].name, 'leak_receipt()');
    await diff.page.getByRole('button', { name: 'By change' }).click();
    await diff.idle();
    assert.equal(diff.parameters().get('sort_by'), 'larger');
    assert.notEqual((await diff.rows('Bottom-up tree'))[0].name, 'leak_receipt()');
  });

  it('shows the change in the summary, and can be turned off', async () => {
    await diff.open('#/summary?diff=1');
    assert.match(await diff.page.locator('.figures').innerText(), /\+24\.4 KiB \(\+50\.0%\) vs old\.cairn/);
    await diff.page.getByRole('button', { name: /^Against/ }).click();
    await diff.idle();
    assert.ok(!diff.parameters().has('diff'));
  });

  it('tells the flame graph the change of each frame', async () => {
    await diff.open('#/flame?diff=1&cost=live_bytes&min_share=0');
    assert.match(await diff.text('flame-status'), /^all:/);
    assert.deepEqual(await diff.page.getByLabel('Colours').getByRole('listitem').allInnerTexts(), ['more than before', 'less than before']);
    const drawn = async () => readSvg((await diff.download(diff.page.getByRole('button', { name: 'SVG', exact: true }))).bytes);
    const tip = (await drawn()).text.split('<title>').find((part) => part.startsWith('leak_receipt()')) ?? '';
    assert.match(tip, /Leaked: 73\.2 KiB \(75,000 B\), [\d.]+%, \+24\.4 KiB against before/);
    await diff.open('#/flame?diff=1&cost=allocated_bytes&min_share=0'); // of what grew, and what did not
    const colours = new Set([...(await drawn()).text.matchAll(/fill="(hsl[^"]*)"/g)].map((match) => match[1]));
    assert.ok(colours.size >= 2, [...colours].join('; '));
  });

  it('shows old, new and change of each thread, process and module', async () => {
    const [old, now] = [report(file), report(changed)];
    await diff.open('#/threads?diff=1&cost=allocations');
    const rows = await diff.rows('Threads');
    for (const name of ['workload', 'helper']) {
      const row = rows.find((candidate) => candidate.cells[0] === name);
      const of = (reported) => reported.threads.find((thread) => thread.name === name).costs.allocations;
      const numbers = comparedNumbers(row.costs[2], row.cells[5]);
      assert.deepEqual([numbers.old, numbers.now], [of(old), of(now)], name);
      assert.ok(numbers.shown.startsWith(humanCount(of(old)) + humanCount(of(now))), numbers.shown);
    }
    const [process] = await diff.rows('Processes');
    const leaked = comparedNumbers(process.costs[1], process.cells[4]);
    assert.deepEqual([leaked.old, leaked.now], [old.totals.live_bytes, now.totals.live_bytes]);
    assert.ok(leaked.shown.endsWith('+24.4 KiB'), leaked.shown);
    const module = (await diff.rows('Modules')).find((row) => row.cells[0].endsWith('/workload'));
    const inModule = (reported) => reported.modules.find((entry) => entry.path.endsWith('/workload')).costs.allocations;
    const allocations = comparedNumbers(module.costs[2], '');
    assert.deepEqual([allocations.old, allocations.now], [inModule(old), inModule(now)]);
  });

  it('shows old, new and change of what leaked by stack, and the stack', async () => {
    await diff.open('#/leaks?diff=1&leaks_by=stack');
    const rows = await diff.rows('Leaks');
    const sum = (side) => rows.reduce((all, candidate) => all + comparedNumbers(candidate.costs[0], '')[side], 0);
    assert.deepEqual([sum('old'), sum('now')], [report(file).totals.live_bytes, report(changed).totals.live_bytes]);
    const place = rows.findIndex((candidate) => candidate.name === 'leak_receipt()');
    const table = await diff.table('Leaks');
    await table.press('Home');
    for (let i = 0; i < place; i++) {
      await table.press('ArrowDown');
    }
    const frames = await diff.page.getByLabel('Stack of the selected leak').locator('li').allInnerTexts();
    assert.match(frames[0], /leak_receipt/);
    assert.ok(frames.some((frame) => /main/.test(frame)), frames.join('; '));
  });

  it('shows old, new and change of what leaked by call site', async () => {
    await diff.open('#/leaks?diff=1&leaks_by=call_site');
    const rows = await diff.rows('Leaks');
    const row = rows.find((candidate) => candidate.name === 'leak_receipt()');
    const numbers = comparedNumbers(row.costs[0], row.cells[1]);
    assert.deepEqual([numbers.old, numbers.now], [50_000, 75_000]);
    assert.equal(numbers.shown, `${humanBytes(50_000)}${humanBytes(75_000)}+${humanBytes(25_000)}`);
    const sum = (side) => rows.reduce((total, candidate) => total + comparedNumbers(candidate.costs[0], '')[side], 0);
    assert.deepEqual([sum('old'), sum('now')], [report(file).totals.live_bytes, report(changed).totals.live_bytes]);
  });

  it('sorts by the change if asked to', async () => {
    await diff.open('#/functions?diff=1&cost=live_bytes');
    await diff.page.getByRole('button', { name: 'By change' }).click();
    await diff.idle();
    const changes = (await diff.rows('Functions')).map((row) => comparedNumbers(row.costs[1], '')).map(({ old, now }) => Math.abs(now - old));
    assert.deepEqual(changes, [...changes].sort((a, b) => b - a));
    assert.equal(changes[0], 25_000);
  });

  it('lays the old histogram over the new one, and tells both', async () => {
    await diff.open('#/sizes?diff=1');
    assert.ok(await diff.page.locator('.bars-old').count() > 3);
    const bucket = (await diff.rows('Buckets')).find((row) => comparedNumbers(row.costs[0], '').old === 50);
    assert.equal(comparedNumbers(bucket.costs[0], '').now, 75);
    assert.equal(comparedNumbers(bucket.costs[1], '').now, 75_000);
    await diff.page.locator('.view').getByRole('button', { name: 'Lifetimes' }).click();
    await diff.idle();
    assert.ok((await diff.rows('Buckets')).length > 0);
  });

  it('draws the old heap beside the new one, and reads both', async () => {
    await diff.open('#/charts?diff=1&function=leak_receipt');
    const over = await diff.page.locator('.chart .u-over').boundingBox();
    const ends = await Promise.all(['new', 'old'].map(async (side) => (await diff.ask(`series?recording=${side}`)).points.end_ms.at(-1)));
    await diff.page.mouse.move(over.x + (over.width * Math.min(...ends)) / Math.max(...ends) / 2, over.y + 40); // both run then
    await diff.page.waitForFunction(() => document.querySelector('.legend-time')?.textContent?.includes('change') === true);
    assert.match(await diff.text('legend-time'), /in all, before [\d.]+ KiB, change [+-]?[\d.]+ /);
    const csv = (await diff.download(diff.page.getByRole('button', { name: 'CSV' }))).bytes.toString('utf8').trim().split('\n');
    assert.match(csv[0], /,old_total$/);
    const olds = csv.slice(1).map((line) => line.split(',').at(-1)).filter((cell) => cell !== '').map(Number);
    assert.equal(Math.max(...olds), 50_000);
  });

  it('takes a second file in the page, and forgets it', async () => {
    await viewer.open('#/functions?cost=live_bytes');
    await page.locator('input[type=file]').setInputFiles(changed);
    await page.waitForFunction(() => location.hash.includes('diff=1'));
    await viewer.idle();
    const row = (await viewer.rows('Functions')).find((candidate) => candidate.name === 'leak_receipt()');
    assert.match(row?.costs[1] ?? '', /before: 73\.2 KiB \(75,000 B\)/);
    await page.getByRole('button', { name: /Forget/ }).click();
    await page.waitForFunction(() => !location.hash.includes('diff=1'));
    await viewer.idle();
    assert.ok(await page.getByRole('button', { name: 'Compare with…' }).isVisible());
  });
});
