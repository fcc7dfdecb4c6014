// Makes the pictures of docs/user/ and the README from a real recording:
//
//   node web/scripts/screenshots.mjs CAIRN demo/shop.cpp
//
// compiles the program and a changed one, records both with CAIRN, serves the recordings, and writes
// docs/user/images/VIEW.png, and VIEW-dark.png of some. `make screenshots` runs it.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

// The folder with the installed packages: the build's copy of web/, or web/ itself.
const web = process.env.CAIRN_WEB ?? path.resolve(import.meta.dirname, '..');
const { chromium } = createRequire(path.join(path.resolve(web), 'package.json'))('playwright-core');
const BROWSER = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];
const SIZE = { width: 1280, height: 720 };

/** What to show, and what to do there before the picture is taken. */
const SHOTS = [
  { name: 'summary', fragment: 'summary', dark: true },
  { name: 'peak', fragment: 'peak' },
  { name: 'bottom-up', fragment: 'bottom-up', act: async (page) => {
    await page.getByRole('treegrid').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
  } },
  { name: 'top-down', fragment: 'top-down?cost=allocations', act: async (page) => {
    await page.getByRole('treegrid').focus();
    await page.keyboard.press('ArrowDown');
  } },
  { name: 'caller-callee', fragment: 'functions?cost=allocations', act: async (page) => {
    await page.getByRole('grid').first().focus();
    for (let i = 0; i < 5; i++) {
      await page.keyboard.press('ArrowDown');
    }
  } },
  { name: 'flame', fragment: 'flame', dark: true, act: async (page) => {
    const box = await page.getByTestId('flame-box').boundingBox();
    await page.mouse.move(box.x + 300, box.y + 250);
  } },
  { name: 'over-time', fragment: 'charts', dark: true, act: async (page) => {
    const box = await page.getByTestId('chart').boundingBox();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 200);
  } },
  { name: 'sizes', fragment: 'sizes' },
  { name: 'size-lifetime', fragment: 'sizes?histogram=size_lifetime' },
  { name: 'leaks', fragment: 'leaks', dark: true },
  { name: 'threads', fragment: 'threads' },
  { name: 'rss', fragment: 'rss' },
  { name: 'source', fragment: 'source?path=SOURCE&line=129&cost=live_bytes' },
  { name: 'comparison', fragment: 'functions?diff=1&cost=live_bytes', isDiff: true },
  { name: 'flame-comparison', fragment: 'flame?diff=1&cost=live_bytes', isDiff: true },
];

const [given, source] = process.argv.slice(2);
if (given === undefined || source === undefined) {
  process.stderr.write('usage: screenshots.mjs CAIRN SOURCE\n');
  process.exit(2);
}
const cairn = path.resolve(given); // programs are recorded in folders of their own
const out = path.resolve(import.meta.dirname, '../../docs/user/images');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-pictures-'));

/** Compiles and records the program; gives the recording. */
function recordProgram(name, text) {
  const own = path.join(folder, name);
  fs.mkdirSync(own);
  fs.writeFileSync(path.join(own, 'shop.cpp'), text);
  execFileSync('g++', ['-O2', '-g', '-pthread', '-o', path.join(own, 'shop'), path.join(own, 'shop.cpp')]);
  const recording = path.join(folder, `${name}.cairn`);
  execFileSync(cairn, ['record', '-o', recording, '--', './shop'], { stdio: 'ignore', cwd: own });
  return { recording, source: path.join(own, 'shop.cpp') };
}

const text = fs.readFileSync(source, 'utf8');
const RARE = 'number % 500 == 499';
if (!text.includes(RARE)) {
  throw new Error(`${source} has no "${RARE}", which the newer build of the comparison changes`);
}
const shop = recordProgram('shop', text);
// A newer build, in which payments are declined, and their receipts lost, five times as often.
const newer = recordProgram('newer', text.replace(RARE, 'number % 100 == 99'));

async function serve(...args) {
  const server = spawn(cairn, ['analyze', '--no-browser', ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
  const url = await new Promise((resolve) => {
    readline.createInterface({ input: server.stdout }).once('line', (line) => resolve(line.trim()));
  });
  // In a comparison the address names a view itself.
  return { url: url.split('#')[0], stop: () => server.kill('SIGTERM') };
}
const single = await serve(shop.recording);
const both = await serve(newer.recording, '--diff', shop.recording);

async function idle(page) {
  await page.waitForFunction(() => document.documentElement.dataset.busy === '0');
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

const browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
fs.mkdirSync(out, { recursive: true });
for (const colorScheme of ['light', 'dark']) {
  const page = await browser.newPage({ viewport: SIZE, colorScheme, reducedMotion: 'reduce' });
  for (const shot of SHOTS.filter((entry) => colorScheme === 'light' || entry.dark === true)) {
    await page.goto('about:blank');
    await page.goto(`${(shot.isDiff === true ? both : single).url}#/${shot.fragment.replace('SOURCE', encodeURIComponent(shop.source))}`);
    await page.waitForSelector('main[data-view]');
    await idle(page);
    const complaint = await page.locator('.notice-bad').allInnerTexts();
    if (complaint.length > 0) {
      throw new Error(`${shot.name}: ${complaint.join('; ')}`);
    }
    await shot.act?.(page);
    await idle(page);
    await page.waitForTimeout(300); // for what is painted on the next frames only
    await page.screenshot({ path: path.join(out, `${shot.name}${colorScheme === 'dark' ? '-dark' : ''}.png`) });
  }
  await page.close();
}
// Pictures of user interfaces lose nothing to a palette and two thirds of their size.
try {
  const pictures = fs.readdirSync(out).filter((name) => name.endsWith('.png')).map((name) => path.join(out, name));
  execFileSync('pngquant', ['--force', '--ext', '.png', '--speed', '1', '64', ...pictures]);
} catch (error) {
  process.stderr.write(`the pictures are not compressed: ${error.message}\n`);
}
await browser.close();
single.stop();
both.stop();
fs.rmSync(folder, { recursive: true, force: true });
