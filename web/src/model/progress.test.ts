// The text for the progress of an answer.
import { expect, it } from 'vitest';
import { progressText } from './progress';

const ours = { target: '/api/v1/tree?a=1', phase: 'counting', stage: 3, done: 410, total: 1000 };
const other = { ...ours, target: '/api/v1/leaks' };

it.each([
  [[other, ours], 'counting, step 3: 41%'],
  [[{ ...ours, done: 1200 }], 'counting, step 3: 100%'],
  [[{ ...ours, total: 0, done: 1200 }], 'counting, step 3: 1,200 done'],
  [[{ ...ours, stage: 0, total: 0, done: 0 }], 'counting, step 1'],
  [[other, { ...ours, phase: 'waiting' }, { ...other, phase: 'waiting' }], 'waiting for 1 other answers'],
  [[{ ...ours, phase: 'packing' }], 'sending'],
  [[other], 'working'],
  [[], 'working'],
])('tells how far %j is', (answers, text) => expect(progressText(answers, ours.target)).toBe(text));
