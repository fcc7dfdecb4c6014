// The texts of the time line's marks.
import { expect, it } from 'vitest';
import { markText } from './mark';

it('says what a mark and a phase say, and what happened to the recording', () => {
  expect(markText({ time_ms: 1, kind: 'mark', text: 'loaded' })).toBe('loaded');
  expect(markText({ time_ms: 1, kind: 'phase', text: 'indexing' })).toBe('indexing');
  expect(markText({ time_ms: 1, kind: 'start', text: '' })).toBe('recording began');
  expect(markText({ time_ms: 1, kind: 'stop', text: '' })).toBe('recording stopped');
});

it('names kinds of later versions', () => {
  expect(markText({ time_ms: 1, kind: 'pause', text: '' })).toBe('pause');
  expect(markText({ time_ms: 1, kind: 'pause', text: 'lunch' })).toBe('lunch');
});

it('cuts what is long, by characters', () => {
  expect(markText({ time_ms: 1, kind: 'mark', text: '\u{1F9EA}'.repeat(41) })).toBe(`${'\u{1F9EA}'.repeat(39)}…`);
});
