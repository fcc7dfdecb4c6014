// Folded wrapper frames.
import { describe, expect, it } from 'vitest';
import { NO_CODE, type CodeName } from './code';
import { foldAction, foldedLabel, foldFrames, NO_FOLD, toggleFold } from './folded-frames';

const frame = (label: string, isWrapper: boolean, module = ''): CodeName => ({ ...NO_CODE, label, isWrapper, module });

describe('foldFrames', () => {
  it('names a run after what its outermost frame belongs to', () => {
    const stack = [
      frame('operator new', true), frame('std::allocator::allocate', true), frame('std::vector::push_back', true), frame('load', false),
      frame('std::invoke', true), frame('main', false), frame('__libc_start_call_main', true, 'libc.so.6'), frame('_start', true, 'app'),
    ];
    expect(foldFrames(stack)).toEqual([
      { first: 0, count: 3, label: '3 frames of std::vector' },
      { first: 3, count: 1, label: '' },
      { first: 4, count: 1, label: '' },
      { first: 5, count: 1, label: '' },
      { first: 6, count: 2, label: '2 frames of app' },
    ]);
  });
  it('keeps each frame exactly once', () => {
    for (let bits = 0; bits < 64; bits++) {
      const runs = foldFrames([0, 1, 2, 3, 4, 5].map((at) => frame('f', ((bits >> at) & 1) === 1)));
      expect(runs.flatMap((run) => Array.from({ length: run.count }, (_, at) => run.first + at))).toEqual([0, 1, 2, 3, 4, 5]);
    }
  });
  it('has nothing to fold in no stack', () => expect(foldFrames([])).toEqual([]));
});

describe('a folded node of a tree', () => {
  const run = { ...NO_FOLD, hidden: 2, path: 7 };
  it('has the name of the run, a call site its own', () => {
    expect(foldedLabel(frame('std::vector::push_back', true), run)).toBe('3 frames of std::vector');
    expect(foldedLabel(frame('load', false), run)).toBe('load');
    expect(foldedLabel(frame('std::vector::push_back', true), NO_FOLD)).toBe('std::vector::push_back');
  });
  it('unfolds and folds again', () => {
    expect(toggleFold('', run)).toBe('7');
    expect(toggleFold('5', run)).toBe('5,7');
    expect(toggleFold('7,5', run)).toBe('5,7');
    expect(toggleFold('5,7', { ...NO_FOLD, unfoldedBy: 5 })).toBe('7');
    expect(toggleFold('5,7', { ...run, unfoldedBy: 5 })).toBe('5,7');
    expect(toggleFold('5', NO_FOLD)).toBe('5');
  });
  it('says what its button does', () => {
    expect(foldAction(run)).toBe('Show the 2 wrapper frames folded here (u)');
    expect(foldAction({ ...NO_FOLD, hidden: 1, path: 7 })).toBe('Show the wrapper frame folded here (u)');
    expect(foldAction({ ...NO_FOLD, unfoldedBy: 7 })).toBe('Fold these wrapper frames again (u)');
    expect(foldAction({ ...NO_FOLD, hidden: 2 })).toBe(''); // a report in one file cannot ask
    expect(foldAction(NO_FOLD)).toBe('');
  });
});
