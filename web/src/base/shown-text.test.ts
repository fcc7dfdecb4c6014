// Hidden characters become escapes; other text does not change.
import { describe, expect, it } from 'vitest';
import { shownText } from './shown-text';

describe('shownText', () => {
  it.each([
    ['plain, \u00e4\u6f22\ud83d\ude00\nnext line', 'plain, \u00e4\u6f22\ud83d\ude00\nnext line'],
    ['evil\u202eredro', 'evil\\u{202e}redro'],
    ['a\u2066b\u2069', 'a\\u{2066}b\\u{2069}'],
    ['zero\u200bwidth\ufeff', 'zero\\u{200b}width\\u{feff}'],
    ['\u001b[31m\u009b', '\\x1b[31m\\u{9b}'],
    ['tag\u{e0041}', 'tag\\u{e0041}'],
  ])('%j becomes %j', (text, shown) => expect(shownText(text)).toBe(shown));
});
