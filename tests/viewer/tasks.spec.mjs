// SPDX-License-Identifier: MIT
// Questions that people bring, each with the fewest steps to its answer: a step is a click, or a key beside those that
// move the focus. By the mouse and by the keyboard alone, at four sizes and in both schemes, the answer is in sight at
// the end, and its figures are those of `cairn report --json`.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compared, humanBytes, recordFamily, recordLeaky, recordSource, recordUnseen, recordWorkload, report, withStage } from './support.mjs';

/** A person presses at most so many keys to move the focus to a control. */
const MOST_TABS = 120;
const SIZES = [[1280, 800], [390, 844], [768, 1024], [1920, 1080]];

const on = {};
const stage = withStage(async () => {
  const { folder } = stage;
  const open = async (file, args = []) => ({ file, ...(await stage.open(file, args)) });
  on.leaky = await open(recordLeaky(folder));
  on.unseen = await open(recordUnseen(folder));
  on.sparse = await open(recordSource(folder, '../programs/resident/survivors.c'));
  on.family = await open(recordFamily(folder, 'family.cairn'));
  const old = recordWorkload(folder, 'old.cairn');
  on.pair = { old, ...(await open(recordWorkload(folder, 'new.cairn', ['more']), ['--diff', old])) };
});

/** What a report says of a finding: its function and its bytes. */
function found({ file }, kind) {
  const item = report(file).findings.items.find((one) => one.kind === kind);
  assert.ok(item !== undefined, `no finding of ${kind}`);
  return [item.function, humanBytes(item.bytes)];
}

const card = (page, kind) => page.getByTestId(`finding-${kind}`);

/** `steps`: what the hand does, in order; `answer`: what is in sight then, and `says` what is in it. */
const TASKS = [
  { question: 'who holds the peak', recording: 'leaky', steps: () => [], answer: (page) => card(page, 'peak'),
    says: (own) => ['fill_cache', ...found(own, 'peak')] },
  { question: 'what leaks', recording: 'leaky', steps: () => [], answer: (page) => card(page, 'growth'),
    says: (own) => ['remember_client', ...found(own, 'growth')] },
  { question: 'what churns', recording: 'leaky', steps: () => [], answer: (page) => card(page, 'churn'), says: (own) => ['parse_request', '12,000', ...found(own, 'churn')] },
  { question: 'by which stack it leaks', recording: 'leaky', steps: (page) => [card(page, 'growth').getByRole('button', { name: 'Leaks' })],
    answer: (page) => page.getByLabel('Frames, innermost first'), says: () => ['remember_client', 'main'] },
  { question: 'on which line it leaks', recording: 'leaky', steps: (page) => [card(page, 'growth').getByRole('button', { name: /leaky\.c/ })],
    answer: (page) => page.locator('[aria-label^="Source /"] .table-selected'), says: () => ['sink = my_alloc(8192);'] },
  { question: 'what one thread allocates', recording: 'pair', fragment: '#/threads',
    steps: (page) => [page.getByLabel('Threads', { exact: true }).getByRole('row', { name: /helper/ }).getByRole('button', { name: 'only' })],
    answer: (page) => page.getByLabel('Filter'), says: () => ['helper'] },
  { question: 'who mapped what is no heap', recording: 'unseen', steps: (page) => [page.locator('button:has([data-testid=figure-peak_rss_bytes])')],
    answer: (page) => page.getByLabel('Mappings by owner').locator('.table-body [role=row]').first(), says: () => ['main', '24.'] },
  { question: 'why RSS stays high', recording: 'sparse', steps: () => [], answer: (page) => card(page, 'sparse'), says: () => ['keep_'] },
  { question: 'which process is the largest', recording: 'family', steps: (page) => [page.getByTestId('tab-threads')],
    answer: (page) => page.getByLabel('Processes', { exact: true }).locator('.table-body [role=row]').first(), says: ({ file }) => ['workload', humanBytes(Math.max(...report(file).processes.map(({ costs }) => costs.peak_bytes)))] },
  { question: 'what changed', recording: 'pair', fragment: '#/summary?diff=1', steps: () => [],
    answer: (page) => page.getByRole('list', { name: 'Findings, the largest change first' }),
    says: ({ file, old }) => [compared(old, file).finding_changes[0]].flatMap((change) => [change.class, change.function.replace(/\(.*/, '')]) },
];

/** Moves the focus by Tab alone to a control, and presses Enter on it. */
async function pressOn(page, control) {
  for (let tabs = 0; !(await control.evaluate((element) => element === document.activeElement)); tabs++) {
    assert.ok(tabs < MOST_TABS, `not reached by ${MOST_TABS} tabs`);
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
}

/** Whether somebody sees it: in the window, and under nothing else. */
function isInSight(element) {
  const box = element.getBoundingClientRect();
  const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
  const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
  const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return right > left && bottom > top && over !== null && (element.contains(over) || over.contains(element));
}

async function answer(task, { width, height, colorScheme, use }) {
  const { viewer, page } = on[task.recording];
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme });
  await viewer.load(task.fragment ?? '#/summary');
  for (const step of task.steps(page)) {
    await use(page, step);
    await viewer.idle();
  }
  const found = task.answer(page).first();
  await found.waitFor();
  if (width < 1280) {
    await found.scrollIntoViewIfNeeded(); // small windows are scrolled, and not sideways
  }
  assert.ok(await found.evaluate(isInSight), 'the answer is not in sight');
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'the page is scrolled sideways');
  const text = (await found.innerText()).replaceAll('\u00a0', ' ');
  for (const part of task.says(on[task.recording])) {
    assert.ok(text.includes(part), `"${part}" is not in "${text}"`);
  }
}

const WAYS = [
  { way: 'by the mouse', colorScheme: 'light', use: (_page, control) => control.click() },
  { way: 'by keys', colorScheme: 'dark', use: pressOn },
];

for (const [width, height] of SIZES) {
  for (const { way, ...how } of WAYS) {
    describe(`${way}, at ${width} by ${height}`, () => {
      for (const task of TASKS) {
        it(`it is seen ${task.question}`, () => answer(task, { width, height, ...how }));
      }
    });
  }
}
