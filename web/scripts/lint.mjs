// The rules that the compiler does not check: layers, no `any`, no `!`, no innerHTML, `as` only where JSON is decoded,
// sizes of files and functions, named exports, a comment that opens each file, no inline code or addresses of other
// servers. Prints every breach as file:line and fails if there is one. ESLint's type-aware rules need the compiler's
// JavaScript interface, which TypeScript 7 does not have.
import fs from 'node:fs';
import path from 'node:path';

const LAYERS = ['base', 'model', 'api', 'state', 'render', 'views'];
/** The layers that know nothing of the page: they run in node. */
const PURE = new Set(['base', 'model']);
const MAX_FILE_LINES = 500;
const MAX_FUNCTION_LINES = 70;

const root = path.resolve(import.meta.dirname, '..');
const breaches = [];

function breach(file, line, text) {
  breaches.push(`${path.relative(root, file)}:${line}: ${text}`);
}

function filesBelow(folder) {
  return fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

/** Text and comments blanked out, line breaks kept, so that patterns see code only. */
function codeOf(text) {
  const blank = (match) => match.replace(/[^\n]/g, ' ');
  return text
    .replace(/\/\*[\s\S]*?\*\//g, blank)
    .replace(/(^|[\s;{(,])\/\/[^\n]*/g, blank)
    .replace(/'(?:[^'\\\n]|\\.)*'/g, blank);
}

const PATTERNS = [
  { pattern: /(:|<|\bas)\s*any\b/, text: 'any' },
  { pattern: /[\w)\]]!(?=[.;,)\]\[])/, text: 'non-null assertion' },
  { pattern: /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|eval\s*\(|new Function)\b/, text: 'text as code' },
  { pattern: /\bexport default\b/, text: 'default export', except: /vite\.config\.ts$/ },
  { pattern: /@ts-(ignore|nocheck)/, text: 'compiler silenced' },
  { pattern: /\b(TODO|FIXME|console\.)/, text: 'unfinished' },
];

function checkPatterns(file, text) {
  codeOf(text).split('\n').forEach((line, index) => {
    for (const rule of PATTERNS) {
      if (rule.pattern.test(line) && !(rule.except?.test(file) ?? false)) {
        breach(file, index + 1, rule.text);
      }
    }
    const cast = /\bas\s+([A-Z{(]|string\b|number\b|unknown\b|readonly\b|never\b|boolean\b)/.test(line) && !/^\s*(import|export)\b/.test(line) && !/\*\s+as\b/.test(line);
    if (cast && !file.endsWith('api/decode.ts')) {
      breach(file, index + 1, 'type assertion outside of api/decode.ts');
    }
  });
}

function checkImports(file, text) {
  const relative = path.relative(path.join(root, 'src'), file);
  const layer = LAYERS.indexOf(relative.split(path.sep)[0]);
  if (layer < 0) {
    return;
  }
  text.split('\n').forEach((line, index) => {
    const target = /from '(\.[^']*)'/.exec(line)?.[1];
    if (target === undefined) {
      return;
    }
    const resolved = path.relative(path.join(root, 'src'), path.resolve(path.dirname(file), target));
    const other = LAYERS.indexOf(resolved.split(path.sep)[0]);
    if (other > layer) {
      breach(file, index + 1, `${LAYERS[layer]} must not use ${LAYERS[other]}`);
    }
    if (LAYERS[layer] === 'render' && ['api', 'state'].includes(LAYERS[other])) {
      breach(file, index + 1, 'render knows pixels, not the server');
    }
  });
  if (PURE.has(LAYERS[layer]) && /\b(document|window|navigator|localStorage)\./.test(codeOf(text))) {
    breach(file, 1, `${LAYERS[layer]} must run without a page`);
  }
}

/** Functions at the outermost level and methods of classes, by their indentation. */
function checkSizes(file, text) {
  const lines = text.split('\n');
  if (lines.length > MAX_FILE_LINES) {
    breach(file, lines.length, `more than ${MAX_FILE_LINES} lines`);
  }
  let start = -1;
  lines.forEach((line, index) => {
    if (/^(export )?(async )?function\b|^(export )?const \w+ = \(.*=> \{$/.test(line)) {
      start = index;
    } else if (/^};?$/.test(line) && start >= 0) {
      if (index - start + 1 > MAX_FUNCTION_LINES) {
        breach(file, start + 1, `function of ${index - start + 1} lines`);
      }
      start = -1;
    }
  });
}

for (const file of filesBelow(path.join(root, 'src'))) {
  const text = fs.readFileSync(file, 'utf8');
  if (/\.tsx?$/.test(file)) {
    if (!/^(\/\/|\/\*)/.test(text)) {
      breach(file, 1, 'no comment that says what this is');
    }
    checkPatterns(file, text);
    checkImports(file, text);
    checkSizes(file, text);
  } else if (file.endsWith('.css') && /!important|https?:/.test(text)) {
    breach(file, 1, '!important or an address');
  }
}
const lock = fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8');
if (/"resolved"/.test(lock)) {
  breach(path.join(root, 'package-lock.json'), 1, 'names a download host');
}
const html = fs.readFileSync(path.join(root, 'index.html'), 'utf8');
if (/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/.test(html)) {
  breach(path.join(root, 'index.html'), 1, 'inline script or style');
}
if (breaches.length > 0) {
  process.stderr.write(`${breaches.join('\n')}\n`);
  process.exit(1);
}
