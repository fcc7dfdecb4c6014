// SPDX-License-Identifier: MIT
// web: measures the speed of the viewer in a real browser on real recordings; `make bench-web` runs it.
//
//   node bench/web.mjs BUILD [DOCUMENT]
//
// Records cc1plus on a large C++ file, and the workload `stacks` with a million stack nodes, and
// serves each with `cairn analyze`. Measures the time from the request for the page to the painted
// summary, and from the change of the address to each painted view, each for the first request.
// Then it zooms the flame graph with up to 200,000 frames and moves the mouse over it, and does so
// with one of some hundred, and measures every frame. DOCUMENT gets the figures between its markers
// `bench:web`. Exit status 1 if a promise is broken: by the clock on a quiet machine; under other
// load, by the processor time of the server and the page's thread together.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import zlib from 'node:zlib';

const [buildArgument, documentPath] = process.argv.slice(2);
if (buildArgument === undefined) {
  process.stderr.write('usage: web.mjs BUILD [DOCUMENT]\n');
  process.exit(2);
}
const build = path.resolve(buildArgument);
const cairn = path.join(build, 'bin', 'cairn');
const { chromium } = createRequire(path.join(build, 'web', 'package.json'))('playwright-core');
const BROWSER = process.env.CHROMIUM ?? '/usr/bin/chromium';
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const RUNS = Number(process.env.RUNS ?? 3);
const QUIET_LOAD = 0.5;
const FRAMES_A_SECOND = 60;
/** The rate of the large flame graph, as a share of the rate of the small one. */
const SAME_RATE = 0.95;
const FIRST_LOAD_MAX_BYTES = 250_000;

const VIEWS = [
  'bottom-up', 'top-down', 'functions', 'flame?min_share=0.0005', 'flame?direction=bottom_up', 'charts', 'charts?chart=allocations&by=stack',
  'sizes', 'sizes?histogram=size_lifetime', 'leaks', 'threads', 'rss', 'summary?function=a',
];

function compilerProper() {
  const say = (option) => execFileSync('g++', [option]).toString().trim();
  const triplet = say('-print-multiarch');
  return [say('-print-prog-name=cc1plus'), '-quiet', '-O2', '-std=gnu++17', '-D_GNU_SOURCE', ...(triplet === '' ? [] : ['-imultiarch', triplet]),
    path.resolve(import.meta.dirname, 'workloads/real/compile.cpp'), '-o', '/dev/null'];
}

const RECORDINGS = [
  { name: 'cc1plus', command: compilerProper(), summaryMaxMs: 1000, viewMaxMs: 1000 },
  { name: 'stacks', command: [path.join(build, 'bench', 'stacks'), 'stacks=250000', 'rounds=1'], summaryMaxMs: 3000, viewMaxMs: 3000 },
];

const load = os.loadavg()[0] ?? 0;
const isQuiet = load < QUIET_LOAD;
const basis = isQuiet ? 'by the clock' : 'server and page';
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
const high = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.95)] ?? NaN;
const say = (text) => process.stderr.write(`${text}\n`);

/** The processor time of a process, which other load hardly changes. */
function cpuMs(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10; // ticks of 10 ms
}

/** The processor time of the page's thread. */
async function watchPage(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find((metric) => metric.name === 'TaskDuration')?.value ?? NaN) * 1000;
  };
}

async function serve(file) {
  const begin = performance.now();
  const child = spawn(cairn, ['analyze', '--no-browser', file], { stdio: ['ignore', 'pipe', 'ignore'] });
  const url = await new Promise((resolve) => {
    readline.createInterface({ input: child.stdout }).once('line', (line) => resolve(line.trim()));
  });
  return { url, cpuMs: () => cpuMs(child.pid), openMs: performance.now() - begin, stop: () => new Promise((resolve) => { child.once('exit', resolve); child.kill('SIGTERM'); }) };
}

/** Resolves in the page after every answer has arrived and a frame with it was painted; returns the page's clock. */
const PAINTED = () => new Promise((resolve) => {
  const look = () => {
    const isStill = document.querySelector('main[data-view]') !== null && document.documentElement.dataset.busy === '0';
    if (isStill) {
      requestAnimationFrame(() => setTimeout(() => (document.documentElement.dataset.busy === '0' ? resolve(performance.now()) : look())));
    } else {
      requestAnimationFrame(look);
    }
  };
  requestAnimationFrame(look);
});

async function timeView(page, fragment) {
  await page.evaluate(() => { window.benchBegin = performance.now(); });
  await page.evaluate((hash) => { location.hash = hash; }, `#/${fragment}`);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
  const end = await page.evaluate(PAINTED);
  return end - await page.evaluate(() => window.benchBegin);
}

/** The flame graph that is measured: all frames, and one of some hundred to compare it with. */
const FLAMES = { all: 'min_share=0', few: 'min_share=0.005' };

/**
 * Zooms in and out repeatedly, then moves the mouse over the frames; returns for each the frames a second, what a frame
 * costs the page's thread, and the time of the page in drawing one.
 */
async function timeFlame(page, pageCpuMs, share) {
  await page.evaluate((hash) => { location.hash = hash; }, `#/flame?cost=allocations&${share}&collapse=`);
  await page.waitForFunction(() => document.querySelector('[data-testid=flame-count]') !== null, undefined, { timeout: 120_000 });
  await page.evaluate(PAINTED);
  const count = await page.getByTestId('flame-count').innerText();
  const zoom = await watchFrames(page, pageCpuMs, async (canvas, still) => {
    const key = (name) => canvas.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
    canvas.focus();
    for (let round = 0; round < 6; round++) {
      for (const name of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) { key(name); }
      await still(400);
      key('Escape');
      await still(400);
    }
  });
  const hover = await watchFrames(page, pageCpuMs, async (canvas) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });
    for (let i = 0; i < 240; i++) {
      const at = { clientX: left + width * ((i * 0.37) % 1), clientY: top + Math.min(height, 300) * ((i * 0.11) % 1) };
      canvas.dispatchEvent(new PointerEvent('pointermove', { ...at, bubbles: true }));
      await frame();
    }
  });
  return { count, zoom, hover };
}

/** Counts the frames of the page while `act` works on the canvas, and what they cost. */
async function watchFrames(page, pageCpuMs, act) {
  const used = await pageCpuMs();
  const told = await page.evaluate(async (acting) => {
    const real = window.requestAnimationFrame.bind(window);
    const costs = [];
    window.requestAnimationFrame = (callback) => real((now) => {
      const begin = performance.now();
      callback(now);
      costs.push(performance.now() - begin);
    });
    let frames = 0;
    let isCounting = true;
    const tick = () => { frames++; if (isCounting) { real(tick); } };
    const begin = performance.now();
    real(tick);
    await new Function(`return (${acting})`)()(document.querySelector('.flame-canvas'), (ms) => new Promise((resolve) => { setTimeout(resolve, ms); }));
    isCounting = false;
    window.requestAnimationFrame = real;
    return { costs, frames, perSecond: frames / (performance.now() - begin) * 1000 };
  }, act.toString());
  return { perSecond: told.perSecond, frameCpuMs: (await pageCpuMs() - used) / told.frames, medianMs: median(told.costs), highMs: high(told.costs) };
}

async function measure(recording, browser, folder) {
  const file = path.join(folder, `${recording.name}.cairn`);
  say(`recording ${recording.name}`);
  execFileSync(cairn, ['record', '-o', file, '--', ...recording.command], { cwd: folder, stdio: 'ignore' });
  const byView = () => new Map(VIEWS.map((view) => [view, []]));
  const runs = { open: [], summary: [], summaryCpu: [], summaryPage: [], views: byView(), cpu: byView(), page: byView() };
  let nodes = 0;
  let flames = null;
  for (let run = 0; run < RUNS; run++) {
    const server = await serve(file);
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    const pageCpuMs = await watchPage(page);
    const begin = performance.now();
    const opened = server.cpuMs();
    const pageOpened = await pageCpuMs();
    await page.goto(server.url, { waitUntil: 'commit' });
    await page.evaluate(PAINTED);
    runs.open.push(server.openMs);
    runs.summary.push(performance.now() - begin);
    runs.summaryCpu.push(server.cpuMs() - opened);
    runs.summaryPage.push(await pageCpuMs() - pageOpened);
    for (const view of VIEWS) {
      const used = server.cpuMs();
      const pageUsed = await pageCpuMs();
      runs.views.get(view).push(await timeView(page, view));
      runs.cpu.get(view).push(server.cpuMs() - used);
      runs.page.get(view).push(await pageCpuMs() - pageUsed);
    }
    nodes = await page.evaluate(async () => (await (await fetch(`/api/v1/tree?limit=1&by=location&token=${localStorage.getItem('cairn-token')}`)).json()).total_nodes);
    if (run === RUNS - 1) {
      flames = { all: await timeFlame(page, pageCpuMs, FLAMES.all), few: await timeFlame(page, pageCpuMs, FLAMES.few) };
    }
    await page.close();
    await server.stop();
  }
  return { ...recording, bytes: fs.statSync(file).size, nodes, runs, flames };
}

function firstLoadBytes() {
  const dist = path.join(build, 'web', 'dist');
  return fs.readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + zlib.gzipSync(fs.readFileSync(path.join(entry.parentPath, entry.name)), { level: 9 }).length, 0);
}

/** The figure for a promise: the clock, or processor time if other load disturbs the clock. */
function judged(clock, server, page) {
  return isQuiet ? median(clock) : median(server) + median(page);
}

const summaryMs = ({ runs }) => judged(runs.summary, runs.summaryCpu, runs.summaryPage);

function worst({ runs }) {
  return VIEWS.map((view) => ({ view, ms: judged(runs.views.get(view), runs.cpu.get(view), runs.page.get(view)) })).sort((a, b) => b.ms - a.ms)[0];
}

const figures = (clock, server, page) => `${seconds(median(clock))}; ${seconds(median(server))} + ${seconds(median(page))}`;
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;

function tables(all, load) {
  const head = ['', ...all.map((one) => one.name)];
  const row = (label, cell) => [label, ...all.map(cell)];
  const rows = [
    row('stack nodes by line', (one) => one.nodes.toLocaleString('en-US')),
    row('size of the recording', (one) => `${(one.bytes / 1048576).toFixed(1)} MiB`),
    row('opened by `cairn analyze`', (one) => seconds(median(one.runs.open))),
    row('summary painted', (one) => figures(one.runs.summary, one.runs.summaryCpu, one.runs.summaryPage)),
    ...VIEWS.map((view) => row(`\`${view}\``, (one) => figures(one.runs.views.get(view), one.runs.cpu.get(view), one.runs.page.get(view)))),
    row(`summary, ${basis}`, (one) => `${seconds(summaryMs(one))} (promised ${seconds(one.summaryMaxMs)})`),
    row(`slowest view, ${basis}`, (one) => `${seconds(worst(one).ms)} (promised ${seconds(one.viewMaxMs)})`),
    ...['all', 'few'].flatMap((which) => [
      row(which === 'all' ? 'frames in the flame graph' : 'frames in the one beside it', (one) => one.flames[which].count),
      ...['zoom', 'hover'].map((act) => row(`${act === 'zoom' ? 'zooming' : 'hovering'}: frames a second; processor time of the page a frame; drawing, median and 95 %`, (one) => {
        const { perSecond, frameCpuMs, medianMs, highMs } = one.flames[which][act];
        return `${perSecond.toFixed(0)}; ${frameCpuMs.toFixed(1)} ms; ${medianMs.toFixed(1)} and ${highMs.toFixed(1)} ms`;
      })),
    ]),
  ];
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const cpu = `${os.cpus()[0]?.model ?? 'unknown'}, ${os.cpus().length} cores`;
  return [
    `Each: until it is painted, and what the server and the page's thread used of the processors meanwhile. ${cpu}; load average before the runs ${load.toFixed(2)}; ${new Date().toISOString().slice(0, 10)}; median of ${RUNS}. First load: ${firstLoadBytes().toLocaleString('en-US')} bytes compressed (promised ${FIRST_LOAD_MAX_BYTES.toLocaleString('en-US')}).`,
    ...(isQuiet ? [] : ['', '**Other work was going on: the times by the clock are too high. The promises are held against processor time, server and page together.**']),
    '',
    line(head), `|---|${'--:|'.repeat(all.length)}`, ...rows.map(line),
  ].join('\n');
}

/** The broken promises, in sentences. */
function broken(all) {
  return all.flatMap((one) => [
    ...(summaryMs(one) > one.summaryMaxMs ? [`${one.name}: the summary takes ${seconds(summaryMs(one))}`] : []),
    ...(worst(one).ms > one.viewMaxMs ? [`${one.name}: ${worst(one).view} takes ${seconds(worst(one).ms)}`] : []),
    ...['zoom', 'hover'].flatMap((act) => {
      const { all: large, few } = one.flames;
      const frame = large[act];
      return frame.frameCpuMs > 1000 / FRAMES_A_SECOND || (isQuiet && (frame.highMs > 1000 / 30 || frame.perSecond < few[act].perSecond * SAME_RATE))
        ? [`${one.name}: ${act}: a frame takes ${frame.frameCpuMs.toFixed(0)} ms, now and then ${frame.highMs.toFixed(0)} ms, and there are ${frame.perSecond.toFixed(0)} a second, ${few[act].perSecond.toFixed(0)} in the smaller graph`] : [];
    }),
  ]).concat(firstLoadBytes() > FIRST_LOAD_MAX_BYTES ? ['the first load is too large'] : []);
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-web-'));
const browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
const all = [];
try {
  for (const recording of RECORDINGS) {
    all.push(await measure(recording, browser, folder));
  }
} finally {
  await browser.close();
  fs.rmSync(folder, { recursive: true, force: true });
}
const text = tables(all, load);
process.stdout.write(`${text}\n`);
if (documentPath !== undefined) {
  const document = fs.readFileSync(documentPath, 'utf8');
  const marked = /(<!-- bench:web -->\n)[^]*?(\n<!-- \/bench:web -->)/;
  if (!marked.test(document)) {
    throw new Error(`${documentPath} has no markers bench:web`);
  }
  fs.writeFileSync(documentPath, document.replace(marked, (_, begin, end) => `${begin}${text}${end}`));
}
const problems = broken(all);
problems.forEach((problem) => say(problem));
process.exitCode = problems.length > 0 ? 1 : 0;
