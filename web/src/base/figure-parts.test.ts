// Figures are found with their units, and nothing is lost.
import { describe, expect, it } from 'vitest';
import { figureParts } from './figure-parts';

describe('figureParts', () => {
  it.each([
    ['held 22.0 MiB at 1.2 s.', ['held ', '22.0 MiB', ' at ', '1.2 s', '.']],
    ['by 1,234 B a second', ['by ', '1,234 B', ' a second']],
    ['1 min 18 s', ['', '1 min', ' ', '18 s', '']],
    ['800 blocks, 3 stacks', ['800 blocks, 3 stacks']],
    ['version 2 so', ['version 2 so']],
    ['', ['']],
  ])('%j is %j', (sentence, parts) => {
    expect(figureParts(sentence)).toEqual(parts);
    expect(parts.join('')).toBe(sentence);
  });
});
