// SPDX-License-Identifier: MIT
// What the viewer's tests stand on: the real program builds, records and serves; a real browser looks.
// From the environment: CAIRN_BIN, the cairn executable; CHROMIUM, the browser (by default Debian's
// chromium-headless-shell, the same engine without the windows around it: it takes half the processor
// time, and a third for its start); DEADLINE_MS, how long anything is waited for; CAIRN_NIGHTLY, if all is
// looked at as `make nightly` does, else a part of what takes long.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { after, before, it } from 'node:test';
import { isPacedServer, isPacedWorkload } from './pace.mjs';

const here = import.meta.dirname;
// The folder with the installed packages: the build's copy of web/, or web/ itself.
const web = process.env.CAIRN_WEB ?? path.resolve(here, '../../web');
export const webRequire = createRequire(path.join(web, 'package.json'));
const { chromium } = webRequire('playwright-core');

const CAIRN = process.env.CAIRN_BIN ?? '';
const BROWSER = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-timer-throttling',
  '--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];
/** For each thing that is waited for: only a hang lasts as long, however busy the machine is. */
export const DEADLINE_MS = Number(process.env.DEADLINE_MS ?? 180_000);
export const IS_NIGHTLY = Boolean(process.env.CAIRN_NIGHTLY);
/** `it` for what takes long and has a shorter sibling: only at night it is a test. */
export const itAtNight = IS_NIGHTLY ? it : () => {};
/** All of a list at night, else one of each `step`, with the first one. */
export const someOf = (list, step) => list.filter((_, i) => IS_NIGHTLY || i % step === 0);

assert.ok(fs.existsSync(CAIRN), `CAIRN_BIN names no file: "${CAIRN}"`);
assert.ok(fs.existsSync(BROWSER), `there is no browser at ${BROWSER}; install chromium-headless-shell`);

function makeFolder() {
  return fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-viewer-'));
}

function run(program, args, options = {}) {
  return execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28, ...options });
}

const builds = new Map();

/** Puts a program of one source file beside this one at `program`; the compiler runs once for all specs of a process. */
function buildSource(source, program) {
  if (fs.existsSync(program)) {
    return;
  }
  if (builds.has(source)) {
    fs.writeFileSync(program, builds.get(source), { mode: 0o755 });
    return;
  }
  const compiler = source.endsWith('.c') ? ['cc'] : ['c++', '-std=c++17'];
  run(compiler[0], [...compiler.slice(1), '-O1', '-g', '-pthread', `-I${path.resolve(here, '../../include')}`, '-o', program, path.join(here, source)]);
  builds.set(source, fs.readFileSync(program));
}

const recordings = new Map();

/** Puts the recording called `key` at `file`; `make` makes it once for all specs of a process, as programs run at their pace. */
function recordOnce(key, file, make) {
  if (recordings.has(key)) {
    fs.writeFileSync(file, recordings.get(key));
  } else {
    make();
    recordings.set(key, fs.readFileSync(file));
  }
  return file;
}

/** The workload's recording; with `arguments` as its command line. */
export function recordWorkload(folder, name, programArguments = [], options = []) {
  const program = path.join(folder, 'workload');
  buildSource('workload.cpp', program);
  const command = [program, ...programArguments];
  return recordOnce(JSON.stringify(['workload', programArguments, options]), path.join(folder, name), () => {
    recordPaced(() => record(folder, name, command, options), isPacedWorkload);
  });
}

/** A recording of a program of one source file beside this one. */
export function recordSource(folder, source, options = [], programArguments = []) {
  const program = path.join(folder, path.parse(source).name);
  buildSource(source, program);
  return record(folder, `${path.parse(source).name}.cairn`, [program, ...programArguments], options);
}

/** Records leaky.c. It has the faults that its comment states if it ran at its pace. */
export function recordLeaky(folder) {
  return recordPaced(() => recordSource(folder, 'leaky.c'), isPacedServer);
}

/** Of /bin/true, which does nearly nothing. */
export function recordNothing(file) {
  run(CAIRN, ['record', '-o', file, '--', '/bin/true']);
}

/** Without allocations: C's main asks for nothing. */
export function recordEmpty(folder) {
  const source = path.join(folder, 'empty.c');
  const program = path.join(folder, 'empty');
  fs.writeFileSync(source, 'int main(void) { return 0; }\n');
  run('cc', ['-o', program, source]);
  return record(folder, 'empty.cairn', [program]);
}

/** A program that maps most of its memory itself, and executes a stripped static program: neither is in the recording. */
export function recordUnseen(folder) {
  const build = (name, source, options) => {
    fs.writeFileSync(path.join(folder, `${name}.c`), source);
    run('cc', ['-o', path.join(folder, name), path.join(folder, `${name}.c`), ...options]);
    return path.join(folder, name);
  };
  const child = build('static_child', 'int main(void) { return 0; }\n', ['-static', '-s']);
  const program = build('carver', `#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
    char *arena = mmap(NULL, 24 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *volatile heap = malloc(1000);
    memset(arena, 1, 24 << 20);
    return heap == NULL || argc < 2 || system(argv[1]) != 0;
}
`, []);
  return record(folder, 'unseen.cairn', [program, child]);
}

/** The workload's file as a crash of the machine leaves it: the end is missing. */
export function recordCut(folder) {
  const whole = recordWorkload(folder, 'whole.cairn', [], ['--checkpoint-interval=100ms']);
  const file = path.join(folder, 'cut.cairn');
  const bytes = fs.readFileSync(whole);
  fs.writeFileSync(file, bytes.subarray(0, bytes.length - 200));
  return file;
}

/** The workload's recording as massif would have written it: who held what, but not how often, nor how long. */
export function importMassif(folder) {
  const file = path.join(folder, 'massif.out');
  run(CAIRN, ['export', recordWorkload(folder, 'for-massif.cairn'), '--to', 'massif', '-o', file]);
  return file;
}

/** What heaptrack_interpret writes: two call sites, one with a single block, and a resident size of 2560 pages. */
export function importHeaptrack(folder) {
  const file = path.join(folder, 'drawn.heaptrack');
  const strings = ['drawn', 'main', 'drawn.c', 'once', 'loop'];
  const loops = Array.from({ length: 20 }, (_, i) => [`c ${(i * 50).toString(16)}`, '+ 1', 'R a00']).flat();
  const lines = [
    'v 10500 3', 'X ./drawn', 'I 1000 4000', ...strings.map((text) => `s ${text.length.toString(16)} ${text}`),
    'i 1000 1 2 3 9', 'i 2000 1 4 3 5', 'i 3000 1 5 3 6', 't 1 0', 't 2 1', 't 3 1', 'a 1000 2', 'a 40 3', 'c 0', '+ 0', ...loops, 'c 3e8', 'R a00', '# strings: 5',
  ];
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

/** Sends a command to the recording of `file` under way. */
export function control(file, ...command) {
  run(CAIRN, ['ctl', file, ...command]);
}

/** Two workloads at once below a shell: three processes. */
export function recordFamily(folder, name) {
  recordWorkload(folder, 'alone.cairn');
  return record(folder, name, ['/bin/sh', '-c', './workload & ./workload more; wait']);
}

/** Three processes one after the other, each killed with what it holds. */
export function recordTurns(folder, name) {
  return record(folder, name, ['/bin/sh', '-c', 'for i in 1 2 3; do perl -e \'@a = map { $_ x 100 } 1 .. 2000; kill 9, $$\'; done; true']);
}

/** A program in which everything that can have a name has one that is an attack. */
function buildHostile(folder, names) {
  const object = path.join(folder, 'hostile.o');
  const place = path.join(folder, 'place.o');
  const program = path.join(folder, '<img src=x onerror=alert(11)>');
  if (fs.existsSync(program)) {
    return program;
  }
  run('cc', ['-O1', '-g0', '-c', '-o', object, path.join(here, 'hostile.c')]);
  run('cc', ['-O1', '-g', '-c', '-o', place, path.join(here, 'hostile_place.c')]);
  run('objcopy', [...names.flatMap((name, i) => ['--redefine-sym', `hostile_${i}=${name}`]), object]);
  run('cc', ['-pthread', '-o', program, object, place]);
  return program;
}

/** Its recording, and another one of it. */
export function recordHostile(folder) {
  const names = JSON.parse(fs.readFileSync(path.join(here, 'hostile_names.json'), 'utf8'));
  const [file, old] = ['"><svg onload=alert(12)>.cairn', '"><svg onload=alert(13)>.cairn'].map((name) => recordOnce(name, path.join(folder, name), () => {
    record(folder, name, [buildHostile(folder, names), '<script>alert(10)</script>']);
  }));
  return { file, old, names };
}

/** Records a program that runs until its input ends; waits for the first state of the file. */
export async function recordLive(folder, name) {
  const file = path.join(folder, name);
  const program = path.join(folder, 'workload');
  const args = ['record', '--checkpoint-interval=200ms', '-o', file, '--', program, 'wait'];
  const child = spawn(CAIRN, args, { cwd: folder, stdio: ['pipe', 'ignore', 'ignore'] });
  child.stdin.write('x');
  for (const deadline = Date.now() + DEADLINE_MS; !fs.existsSync(file);) {
    assert.ok(Date.now() < deadline, `no ${file} within the deadline`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  const ended = new Promise((resolve) => { child.once('exit', resolve); });
  return { file, input: child.stdin, end: async () => { child.stdin.end(); await ended; } };
}

function record(folder, name, command, options = []) {
  const file = path.join(folder, name);
  run(CAIRN, ['record', ...options, '-o', file, '--', ...command], { cwd: folder });
  return file;
}

/** What `make` records, anew until its history `isPaced`: a busy machine may hold up the program or the recorder. */
function recordPaced(make, isPaced) {
  for (const deadline = Date.now() + DEADLINE_MS; ;) {
    const file = make();
    if (isPaced(JSON.parse(run(CAIRN, ['export', '--to', 'json', file]).toString('utf8')))) {
      return file;
    }
    assert.ok(Date.now() < deadline, `${file}: the program was held up in each of its runs`);
  }
}

/** What the command line says of the same file: with status 1 if nothing matches, and the same document. */
export function report(file, args = []) {
  try {
    return JSON.parse(run(CAIRN, ['report', '--json', '-n', '0', ...args, file]).toString('utf8'));
  } catch (error) {
    assert.equal(error.status, 1, error.message);
    return JSON.parse(error.stdout.toString('utf8'));
  }
}

/** What `cairn diff` says of two files, with status 1 if something grew. */
export function compared(old, now) {
  try {
    return JSON.parse(run(CAIRN, ['diff', '--json', old, now]).toString('utf8'));
  } catch (error) {
    assert.equal(error.status, 1, error.message);
    return JSON.parse(error.stdout.toString('utf8'));
  }
}

/** The recording as a page in one file; gives its path. */
export function exportHtml(file, page, args = []) {
  run(CAIRN, ['export', '--html', '-o', page, ...args, file]);
  return page;
}

/** Starts `cairn analyze`; gives its address and how to stop it. */
export async function serve(file, args = []) { // an empty list in place of a file: a store
  const child = spawn(CAIRN, ['analyze', '--no-browser', ...args, ...[file].flat()], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data) => { said += data; });
  const lines = readline.createInterface({ input: child.stdout });
  const url = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no address within the deadline: ${said}`)), DEADLINE_MS);
    lines.once('line', (line) => { clearTimeout(timer); resolve(line.trim()); });
    child.once('exit', (code) => { clearTimeout(timer); reject(new Error(`analyze ended with ${code}: ${said}`)); });
  });
  const stop = () => new Promise((resolve) => {
    child.removeAllListeners('exit');
    child.once('exit', resolve);
    child.kill('SIGTERM');
  });
  return { url, stop };
}

let sharedBrowser = null;
let stages = 0;

/** The browser of all stages of this process: its start takes most of a second of processor time. */
function startBrowser() {
  sharedBrowser ??= chromium.launch({ executablePath: BROWSER, args: FLAGS, headless: true, timeout: DEADLINE_MS });
  return sharedBrowser;
}

/** Pages that share nothing with those of another session: no storage, no cookies, no cache. */
async function startSession(browser) {
  const session = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
  session.setDefaultTimeout(DEADLINE_MS);
  return session;
}

/**
 * What a spec stands on, from before its tests to after them: a folder, a browser, and servers with pages of the viewer.
 * `prepare` makes what the tests look at. A page that `open` gave must not complain.
 */
export function withStage(prepare) {
  const stage = new Stage();
  stages++;
  before(async () => {
    stage.folder = makeFolder();
    stage.browser = await startBrowser();
    stage.session = await startSession(stage.browser);
    await prepare(stage);
  });
  after(() => stage.end());
  return stage;
}

class Stage {
  viewers = [];
  servers = [];

  newPage() {
    return this.session.newPage();
  }

  /** That knows nothing of what the other one was reported. */
  anotherSession() {
    return startSession(this.browser);
  }

  /** The viewer in a page of its own, on what `server` serves. */
  async view(server) {
    return new Viewer(await this.newPage(), server.url);
  }

  /** Serves a recording until the end, and looks at it. */
  async open(file, args = []) {
    const server = await serve(file, args);
    this.servers.push(server);
    const viewer = await this.view(server);
    this.viewers.push(viewer);
    return { server, viewer, page: viewer.page };
  }

  async end() {
    stages--;
    await (stages === 0 ? this.browser : this.session)?.close();
    await Promise.all(this.servers.map((server) => server.stop()));
    fs.rmSync(this.folder, { recursive: true, force: true });
    assert.deepEqual(this.viewers.flatMap((viewer) => viewer.complaints), []);
  }
}

/** A page of the viewer; remembers everything that must not happen. */
export class Viewer {
  constructor(page, url) {
    this.page = page;
    this.url = new URL(url);
    this.token = this.url.searchParams.get('token');
    this.complaints = [];
    page.on('pageerror', (error) => this.complaints.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => { this.complaints.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    page.on('console', (message) => {
      if (message.type() === 'error') {
        this.complaints.push(`console: ${message.text()} ${message.location().url}`);
      }
    });
  }

  /** Goes to a view: by night in a new document, by day as `follow` does, which takes a third of the time. */
  open(fragment) {
    return IS_NIGHTLY ? this.load(fragment) : this.follow(fragment);
  }

  /**
   * Opens a view by its address in a new document, as a copied link would. Going to an address that differs in its
   * fragment alone keeps the document, so it is reloaded; a detour by about:blank would cost a process each time.
   */
  async load(fragment) {
    this.url.hash = fragment;
    await this.page.bringToFront();
    if (this.isShown()) {
      await this.page.evaluate((href) => history.replaceState(null, '', href), this.url.href);
      await this.page.reload();
    } else {
      await this.page.goto(this.url.href);
    }
    await this.idle();
  }

  /** Goes to a view as a link of the page does: the document stays. */
  async follow(fragment) {
    const moved = this.isShown() && await this.page.evaluate((hash) => new Promise((resolve) => {
      const before = location.href;
      window.addEventListener('hashchange', () => resolve(true), { once: true });
      location.hash = hash;
      if (location.href === before) { resolve(false); }
    }), fragment);
    if (moved) {
      await this.idle();
    } else {
      await this.load(fragment);
    }
  }

  /** Waits until every answer is there and painted; in front, since a page behind another one paints once a second. */
  async idle() {
    await this.page.bringToFront();
    await this.page.waitForSelector('main[data-view]');
    await this.page.evaluate(() => new Promise((resolve) => {
      let still = 0;
      const look = () => {
        still = document.documentElement.dataset.busy === '0' ? still + 1 : 0;
        if (still >= 3) { resolve(null); } else { requestAnimationFrame(look); }
      };
      look();
    }));
  }

  /** Whether the page shows the viewer; a new one shows about:blank. */
  isShown() {
    return new URL(this.page.url()).pathname === this.url.pathname;
  }

  fragment() {
    return new URL(this.page.url()).hash;
  }

  parameters() {
    return new URLSearchParams(this.fragment().split('?')[1] ?? '');
  }

  text(testid) {
    return this.page.getByTestId(testid).innerText();
  }

  /** The rows of a table as texts of their cells. */
  rows(label) {
    return this.page.evaluate((name) => {
      const table = [...document.querySelectorAll('.table')].find((t) => t.getAttribute('aria-label') === name);
      return [...(table?.querySelectorAll('.table-body [role=row]') ?? [])].map((row) => ({
        name: row.querySelector('.code')?.getAttribute('title')?.split('\n')[0] ?? row.querySelector('[role=gridcell]')?.textContent ?? '',
        level: Number(row.getAttribute('aria-level') ?? '0'),
        cells: [...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent ?? ''),
        costs: [...row.querySelectorAll('.cost')].map((cost) => cost.getAttribute('title') ?? ''),
      }));
    }, label);
  }

  /** The rows of a tree that are below no other. */
  async firstLevel(label) {
    return (await this.rows(label)).filter((row) => row.level === 1);
  }

  /** What a button saves, as bytes. */
  async download(button) {
    const [download] = await Promise.all([this.page.waitForEvent('download'), button.click()]);
    return { name: download.suggestedFilename(), bytes: fs.readFileSync(await download.path()) };
  }

  /** What the server says to the page itself. */
  ask(route) {
    return this.page.evaluate(async ([path, token]) => (await fetch(`/api/v1/${path}`, { headers: { authorization: `Bearer ${token}` } })).json(), [route, this.token]);
  }

  async table(label) {
    const table = this.page.getByLabel(label, { exact: true });
    await table.focus();
    return table;
  }
}

/** The number in "Peak: 4.02 MiB (4,219,392 B)" or "Allocations: 1,234". */
export function exactNumber(title) {
  const line = title.split('\n')[0] ?? '';
  const match = /\(([\d,]+) B\)/.exec(line) ?? /: ([\d,]+)( B)?$/.exec(line);
  assert.ok(match !== null, `no number in "${title}"`);
  return Number(match[1].replaceAll(',', ''));
}

/** That bytes are a PNG; its size. */
export function pngSize(bytes) {
  assert.equal(bytes.subarray(1, 4).toString('latin1'), 'PNG');
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** Rows of RFC 4180, read anew here as an oracle. */
export function readCsv(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n)/g)) {
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === '\n') { rows.push([]); }
  }
  return rows.slice(0, -1);
}

/** Tags and texts of an SVG document that is known to have neither comments nor CDATA. */
export function readSvg(bytes) {
  const text = bytes.toString('utf8');
  return {
    text,
    tags: [...new Set([...text.matchAll(/<\/?([^\s>/]+)/g)].map((match) => match[1]))].sort(),
    words: [...text.matchAll(/<text[^>]*>([^<]*)</g)].map((match) => match[1]),
  };
}

/** Old, new and change of a cell in a comparison. */
export function comparedNumbers(title, shown) {
  const [now, before] = title.split('\n');
  return { old: exactNumber(before), now: exactNumber(now), shown };
}

/** Three significant digits in binary units, written anew here as an oracle. */
export function humanBytes(bytes) {
  if (bytes < 1024) {
    return `${bytes} B`;
  }
  const units = ['KiB', 'MiB', 'GiB'];
  let value = bytes / 1024;
  let unit = 0;
  while (Number(value.toPrecision(value >= 1000 ? 4 : 3)) >= 1024) {
    value /= 1024;
    unit++;
  }
  return `${value >= 1000 ? Math.round(value) : value.toPrecision(3)} ${units[unit]}`;
}

export function humanCount(count) {
  return count.toLocaleString('en-US');
}

/** Sum of a cost over all stacks of a report in which a frame passes. */
export function costOfFunction(reported, cost, passes, section = 'allocations') {
  let sum = 0;
  for (const site of reported.top[section]) {
    for (const stack of site.stacks) {
      if (stack.frames.some((frame) => passes(frame.function))) {
        sum += stack.costs[cost];
      }
    }
  }
  return sum;
}

/** How a name of hostile_names.json is shown: what is invisible or turns text around is spelled out. */
export function shownName(name) {
  return name.replace('\u202e', '\\u{202e}').replace('\u2066', '\\u{2066}').replace('\u2069', '\\u{2069}').replace('\u200b', '\\u{200b}');
}
