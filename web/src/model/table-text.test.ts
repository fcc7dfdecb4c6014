// Tables as text for other programs.
import { describe, expect, it } from 'vitest';
import { savedRows, tableText } from './table-text';

const ROWS = [['operator()(int, char)', 12], ['say "hi"\nthere', 0], ['a\tb', 3.5]] as const;

describe('tableText', () => {
  it('quotes in CSV what must be quoted', () => {
    expect(tableText(['name', 'bytes'], ROWS, 'csv')).toBe('name,bytes\n"operator()(int, char)",12\n"say ""hi""\nthere",0\na\tb,3.5\n');
  });
  it('has no tab and no line break in a cell of TSV', () => {
    expect(tableText(['name', 'bytes'], ROWS, 'tsv')).toBe('name\tbytes\noperator()(int, char)\t12\nsay "hi" there\t0\na b\t3.5\n');
  });
  it('has a head without rows', () => expect(tableText(['a'], [], 'csv')).toBe('a\n'));
  it('has an apostrophe before what a spreadsheet would compute, but not before a number', () =>
    expect(tableText(['name', 'slope'], [['=cmd()', -5], ['@plt', 1], ['a=b', 0]], 'csv')).toBe("name,slope\n'=cmd(),-5\n'@plt,1\na=b,0\n"));
});

describe('savedRows', () => {
  const columns = [
    { head: 'Name', value: (row: number) => `f${row}` },
    { head: 'Peak (bytes)', cost: 'peak_bytes', value: (row: number) => 10 ** row },
  ];
  it('has a value of each column in each row', () => expect(savedRows(columns, 2, () => true)).toEqual([['f0', 1], ['f1', 10]]));
  it('has no number for an unknown figure', () => expect(savedRows([{ head: 'Peak', value: () => Number.NaN }], 1, () => true)).toEqual([['unknown']]));
  it('says which numbers are unknown', () => expect(savedRows(columns, 1, (cost) => cost !== 'peak_bytes')).toEqual([['f0', 'unknown']]));
});
