// Tables as text for other programs.
import { describe, expect, it } from 'vitest';
import { tableText } from './table-text';

const ROWS = [['operator()(int, char)', 12], ['say "hi"\nthere', 0], ['a\tb', 3.5]] as const;

describe('tableText', () => {
  it('quotes in CSV what must be quoted', () => {
    expect(tableText(['name', 'bytes'], ROWS, 'csv')).toBe('name,bytes\n"operator()(int, char)",12\n"say ""hi""\nthere",0\na\tb,3.5\n');
  });
  it('has no tab and no line break in a cell of TSV', () => {
    expect(tableText(['name', 'bytes'], ROWS, 'tsv')).toBe('name\tbytes\noperator()(int, char)\t12\nsay "hi" there\t0\na b\t3.5\n');
  });
  it('has a head without rows', () => expect(tableText(['a'], [], 'csv')).toBe('a\n'));
});
