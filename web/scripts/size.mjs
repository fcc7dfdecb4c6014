// Says what the first load weighs, compressed, and fails beyond the budget.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

const BUDGET_BYTES = 250_000;
const dist = path.resolve(import.meta.dirname, '../dist');
let sum = 0;
for (const entry of fs.readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (entry.isFile() && entry.name !== 'SOURCES') {
    sum += zlib.gzipSync(fs.readFileSync(path.join(entry.parentPath, entry.name)), { level: 9 }).length;
  }
}
process.stdout.write(`first load: ${sum} bytes compressed of ${BUDGET_BYTES}\n`);
process.exit(sum > BUDGET_BYTES ? 1 : 0);
