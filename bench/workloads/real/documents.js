// SPDX-License-Identifier: MIT
// documents: the work of a small node service: JSON, strings, maps, buffers and compression.
// The engine's own heap is mmapped; buffers, zlib and the parser's and compiler's zones are malloc's.
//
// usage: node documents.js ROUNDS
'use strict';

const zlib = require('node:zlib');
const crypto = require('node:crypto');

function document(number) {
  const parts = [];
  for (let i = 0; i < 20; i++) {
    parts.push({ at: i, value: i / (number + 1), text: 'x'.repeat(i % 17) });
  }
  return { id: number, name: `document ${number}`, parts };
}

function round(start) {
  const documents = [];
  for (let i = 0; i < 50; i++) {
    documents.push(document(start * 50 + i));
  }
  const text = JSON.stringify(documents);
  const packed = zlib.deflateSync(Buffer.from(text), { level: 1 });
  const parsed = JSON.parse(zlib.inflateSync(packed).toString());
  const sums = parsed.map((entry) => crypto.createHash('md5').update(entry.name).digest('hex'));
  return new Set(sums).size;
}

const rounds = Number(process.argv[2]);
let total = 0;
for (let i = 0; i < rounds; i++) {
  total += round(i);
  // New source each time, so that the engine compiles as during the load of a program.
  total += new Function('x', `const unused${i} = x; return x + ${i % 3};`)(i) % 2;
}
console.log(total);
