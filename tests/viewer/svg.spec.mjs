// SPDX-License-Identifier: MIT
// The exported flame graph in a real browser, from a file: zoom, back, search, keys.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { recordHostile, recordWorkload, report, shownName, withStage } from './support.mjs';

let file, page;
const complaints = [];

function exportSvg(recording, name) {
  const svg = path.join(stage.folder, name);
  execFileSync(process.env.CAIRN_BIN, ['export', '--to', 'svg', '--cost', 'allocations', '-o', svg, recording]);
  return pathToFileURL(svg).href;
}

const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
  page = await stage.newPage();
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => { complaints.push(dialog.message()); void dialog.dismiss(); });
  await page.goto(exportSvg(file, 'workload.svg'));
});

/** The frames that are shown: name, x and width. */
function shown() {
  return page.evaluate(() => [...document.querySelectorAll('.frame')]
    .filter((group) => group.style.display !== 'none')
    .map((group) => {
      const rect = group.querySelector('rect');
      return {
        name: group.querySelector('title').textContent.split('\n')[0],
        x: Number(rect.getAttribute('x')), width: Number(rect.getAttribute('width')),
        isBehind: group.classList.contains('behind'), isMatch: group.classList.contains('match'),
      };
    }));
}

async function click(name) {
  await page.evaluate((wanted) => {
    const group = [...document.querySelectorAll('.frame')]
      .find((frame) => frame.querySelector('title').textContent.split('\n')[0] === wanted);
    group.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  }, name);
}

describe('the exported flame graph', () => {
  it('shows every frame and its controls at first', async () => {
    const frames = await shown();
    assert.equal(frames[0].name, 'all');
    assert.equal(frames[0].width, 1200);
    assert.ok(await page.isVisible('#search'));
  });

  it('zooms to a frame and back', async () => {
    const before = await shown();
    const target = before.find((frame) => frame.width < 600 && frame.width > 50);
    await click(target.name);
    const zoomed = await shown();
    const same = zoomed.find((frame) => frame.name === target.name && !frame.isBehind);
    assert.ok(Math.abs(same.width - 1200) < 0.01 && Math.abs(same.x) < 0.01, JSON.stringify(same));
    assert.ok(zoomed.some((frame) => frame.name === 'all' && frame.isBehind && frame.width === 1200));
    assert.ok(zoomed.length < before.length);
    await page.click('#back');
    assert.deepEqual(await shown(), before);
  });

  it('finds functions and says their share', async () => {
    const sites = report(file, ['--filter-function', 'main']);
    await page.keyboard.press('/');
    await page.keyboard.type('MAIN');
    const frames = await shown();
    assert.ok(frames.every((frame) => frame.isMatch === frame.name.toLowerCase().includes('main')));
    const percent = sites.totals.allocations / report(file).totals.allocations * 100;
    const said = await page.textContent('#matched');
    assert.ok(Math.abs(Number(/[\d.]+/.exec(said)[0]) - percent) <= 0.1, `${said} for ${percent}`);
  });

  it('takes regular expressions, wrong ones too', async () => {
    await page.fill('#search', '/^main$/');
    assert.deepEqual([...new Set((await shown()).filter((frame) => frame.isMatch).map((frame) => frame.name))], ['main']);
    await page.fill('#search', '/(/');
    assert.ok(await page.evaluate(() => document.querySelector('#search').classList.contains('wrong')));
    assert.ok((await shown()).every((frame) => !frame.isMatch));
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => document.querySelector('#search').value), '');
  });

  it('shows names that are attacks as text', async () => {
    const { file: hostile, names } = recordHostile(stage.folder);
    await page.goto(exportSvg(hostile, 'hostile.svg'));
    const found = new Set((await shown()).map((frame) => frame.name));
    const isPlain = (name) => !/[\u0000-\u001f\u007f-\u009f]/.test(name);
    for (const name of names.filter(isPlain)) {
      assert.ok(found.has(shownName(name)), `${name} in ${[...found]}`);
    }
  });

  it('has nothing to complain about', () => {
    assert.deepEqual(complaints, []);
  });
});
