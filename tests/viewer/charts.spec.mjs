// SPDX-License-Identifier: MIT
// Charts: what the pointer reads off them, what is saved of them, and where their legend leads.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { humanBytes, humanCount, pngSize, readSvg, recordWorkload, report, withStage } from './support.mjs';

let file, viewer, page, reported;
const stage = withStage(async () => {
  file = recordWorkload(stage.folder, 'workload.cairn');
  reported = report(file);
  ({ viewer, page } = await stage.open(file));
});

const button = (name) => page.getByRole('button', { name, exact: true });

/** The lines below the head of a saved table: time, total, the layers that make it up, and the highest if it is there. */
function readCsv(bytes) {
  const [head, ...rows] = bytes.toString('utf8').trimEnd().split('\n');
  const hasHighest = head.endsWith(',highest');
  return rows.map((row) => row.split(',').map(Number)).map(([end_ms, total, ...rest]) => (
    hasHighest ? { end_ms, total, layers: rest.slice(0, -1), highest: rest.at(-1) } : { end_ms, total, layers: rest }));
}

describe('values over time', () => {
  for (const [chart, total] of [['allocations', 'allocations'], ['temporary', 'temporary'], ['allocated_bytes', 'allocated_bytes']]) {
    it(`${chart}: the slices make up the total of the report, and the layers make up each slice`, async () => {
      await viewer.open(`#/charts?chart=${chart}`);
      const { name, bytes } = await viewer.download(button('CSV'));
      assert.equal(name, `workload-${chart}.csv`);
      const rows = readCsv(bytes);
      assert.equal(rows.reduce((sum, row) => sum + row.total, 0), reported.totals[total]);
      for (const row of rows) {
        assert.equal(row.layers.reduce((sum, value) => sum + value, 0), row.total, `until ${row.end_ms} ms`);
      }
    });
  }

  it('consumed: ends with what leaked, suppressed or not', async () => {
    await viewer.open('#/charts');
    const rows = readCsv((await viewer.download(button('CSV'))).bytes);
    assert.equal(rows.at(-1).total, reported.totals.live_bytes + reported.selection.suppressed.live_bytes);
    assert.ok(Math.max(...rows.map((row) => row.total)) <= reported.totals.peak_bytes);
  });

  it('consumed: its outline reaches the peak and nothing else does; a filter has no outline', async () => {
    await viewer.open('#/charts');
    const rows = readCsv((await viewer.download(button('CSV'))).bytes);
    assert.equal(Math.max(...rows.map((row) => row.highest)), reported.totals.peak_bytes);
    assert.ok(rows.every((row) => row.highest >= row.total));
    const legend = readSvg((await viewer.download(button('SVG'))).bytes).words;
    assert.ok(legend.includes('all together, highest within each slice'), legend.join('; '));
    assert.match(await page.locator('.charts-hint').first().innerText(), /The dashed line is RSS\./);
    await viewer.open('#/charts?function=keep_cache');
    assert.match(await page.locator('.charts-hint').first().innerText(), /The dashed line is RSS, which is not filtered\./);
    const drawn = readSvg((await viewer.download(button('SVG'))).bytes).words;
    assert.ok(drawn.includes('all together'), drawn.join('; '));
    assert.ok(drawn.includes(`peak of the whole heap ${humanBytes(reported.totals.peak_bytes)}`), drawn.join('; '));
  });

  it('the pointer reads the exact value of its slice', async () => {
    await viewer.open('#/charts?chart=allocations');
    const over = await page.locator('.chart .u-over').boundingBox();
    await page.mouse.move(over.x + over.width - 2, over.y + 50);
    await page.waitForFunction(() => document.querySelector('.legend-time')?.textContent?.startsWith('until') === true);
    const { points } = await viewer.ask('series?value=allocations');
    assert.ok((await viewer.text('legend-time')).includes(`: ${humanCount(points.allocations.at(-1))} in all`), await viewer.text('legend-time'));
  });

  it('the rate is that of the slice', async () => {
    await viewer.open('#/charts?chart=rate');
    const { points, slice_ms: slice } = await viewer.ask('series?value=allocations');
    const rows = readCsv((await viewer.download(button('CSV'))).bytes);
    points.allocations.forEach((count, i) => {
      const ms = points.end_ms[i] - points.start_ms[i];
      assert.ok(ms <= slice);
      assert.equal(Math.round(rows[i].total * ms), count * 1000);
    });
  });
});

describe('what is saved', () => {
  it('of a chart: a drawing with its axes and the names of its legend', async () => {
    await viewer.open('#/charts');
    const { name, bytes } = await viewer.download(button('SVG'));
    assert.equal(name, 'workload-live_bytes.svg');
    const { tags, words } = readSvg(bytes);
    assert.deepEqual(tags, ['path', 'rect', 'svg', 'text', 'title']);
    assert.ok(words.some((word) => word.startsWith('keep_cache()')), words.join('; '));
    assert.ok(words.includes(`peak ${humanBytes(reported.totals.peak_bytes)}`), words.join('; '));
  });

  it('of a chart: the same as pixels, and not all of one colour', async () => {
    await viewer.open('#/charts');
    const { name, bytes } = await viewer.download(button('PNG'));
    assert.equal(name, 'workload-live_bytes.png');
    assert.equal(pngSize(bytes).width, 2400);
    const colours = await page.evaluate(async (data) => {
      const image = await createImageBitmap(new Blob([new Uint8Array(data)], { type: 'image/png' }));
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const pixels = context.getImageData(0, 0, image.width, image.height).data;
      const seen = new Set();
      for (let i = 0; i < pixels.length; i += 4 * 101) {
        seen.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
      }
      return seen.size;
    }, [...bytes]);
    assert.ok(colours > 5, `${colours} colours`);
  });
});

describe('what is saved of other views', () => {
  for (const [view, name, words] of [
    ['sizes', 'sizes', ['Sizes of blocks, in blocks', 'all others']],
    ['sizes?histogram=lifetimes&rank=bytes', 'lifetimes', ['Lifetimes of blocks, in bytes', 'all others']],
    ['sizes?histogram=size_lifetime', 'size_lifetime', ['Blocks by size (to the right) and lifetime (upwards), a stronger colour is more, logarithmic']],
    ['rss', 'rss', ['Resident size over time']],
  ]) {
    it(`${view}: a drawing and pixels`, async () => {
      await viewer.open(`#/${view}`);
      const drawing = await viewer.download(button('SVG'));
      assert.equal(drawing.name, `workload-${name}.svg`);
      const svg = readSvg(drawing.bytes);
      for (const word of words) {
        assert.ok(svg.words.includes(word), `${word} in ${svg.words.join('; ')}`);
      }
      assert.ok((svg.text.match(/<(rect|path)/g) ?? []).length > 10);
      const pixels = await viewer.download(button('PNG'));
      assert.equal(pixels.name, `workload-${name}.png`);
      assert.equal(pngSize(pixels.bytes).width, 2400);
    });
  }
});

describe('the heat map', () => {
  it('has every block that was freed in one of its cells', async () => {
    await viewer.open('#/sizes?histogram=size_lifetime&function=keep_cache');
    const titles = await page.getByTestId('heat').locator('title').allTextContents();
    const blocks = titles.map((title) => Number(/: ([\d,]+) blocks/.exec(title)[1].replaceAll(',', '')));
    assert.equal(blocks.reduce((sum, count) => sum + count, 0), 1000);
    assert.ok(titles.some((title) => /KiB/.test(title) && /lived/.test(title)), titles.join('; '));
  });
});

describe('the legend', () => {
  it('leads to the function of a call site', async () => {
    await viewer.open('#/charts');
    await page.locator('.legend').getByRole('button', { name: 'keep_cache' }).click();
    await viewer.idle();
    assert.equal(viewer.parameters().get('fn'), 'keep_cache()');
  });

  it('has the frames of a stack', async () => {
    await viewer.open('#/charts?by=stack&wrappers=1');
    await page.locator('.legend details').first().locator('summary').click();
    const frames = await page.locator('.legend details').first().locator('li').allInnerTexts();
    const wanted = reported.top.peak_bytes[0].stacks[0].frames.length;
    assert.equal(frames.length, wanted, frames.join('; '));
    assert.ok(frames.some((frame) => frame.includes('keep_cache')));
  });
});

describe('a sampled recording', () => {
  it('states the error of each value, and where the outline may really be', async () => {
    const sampled = recordWorkload(stage.folder, 'sampled.cairn', [], ['--sample=4KiB']);
    const { viewer: other } = await stage.open(sampled);
    const errorOf = (bytes) => Math.ceil(2 * Math.sqrt((9 / 8) * 4096 * bytes)); // docs/format/json.md, Costs
    await other.open('#/charts');
    const [head, ...rows] = (await other.download(other.page.getByRole('button', { name: 'CSV', exact: true }))).bytes.toString('utf8').trimEnd().split('\n');
    const names = head.split(',');
    const last = (name) => names.lastIndexOf(name);
    assert.ok(last('total error') > 0 && last('rest error') > 0 && last('highest error') > 0, head);
    assert.equal(names.filter((name) => name.endsWith(' error') && !/^(total|rest|highest) error$/.test(name)).length, names.indexOf('rest') - 2);
    for (const row of rows.map((text) => text.split(',').map(Number))) {
      for (const name of ['total', 'rest']) {
        assert.equal(row[last(`${name} error`)], errorOf(row[names.indexOf(name)]));
      }
      assert.ok(Math.abs(row[last('highest error')] - 1.5 * errorOf(row[names.indexOf('highest')])) <= 2);
    }
    const { words } = readSvg((await other.download(other.page.getByRole('button', { name: 'SVG', exact: true }))).bytes);
    assert.ok(words.includes('where it may really be'), words.join('; '));
    assert.match(await other.page.locator('.charts-hint').first().innerText(), /between the thin lines in about 95 of 100 cases/);
    const box = await other.page.locator('.u-over').boundingBox();
    await other.page.mouse.move(box.x + box.width - 3, box.y + box.height / 2);
    assert.match(await other.page.getByTestId('legend-time').innerText(), /: [0-9.]+ [KM]iB ±\d+% in all/);
    await other.follow('#/charts?chart=allocations');
    await other.page.mouse.move(box.x + box.width - 30, box.y + box.height / 2);
    assert.match(await other.page.getByTestId('legend-time').innerText(), /^until .*: [0-9,]+( ±\d+%)? in all$/);
  });
});
