// That a table cannot have a column whose files would be empty: the compiler checks it (npm run check),
// and the order of the rows is that of the page.
import { describe, expect, it } from 'vitest';
import { inOrder, textColumn, type Column } from './data-table';

const bare = { key: 'name', title: 'Name', widthPx: 100 };

// @ts-expect-error: A column says what CSV and TSV have of it.
export const unsaved: Column = { ...bare, cell: () => 'shown' };

describe('columns', () => {
  it('have the same text on the page and in files', () => {
    const column = textColumn(bare, (row) => `f${row}`);
    expect([column.cell(3), column.saved.map(({ head, value }) => [head, value(3)])]).toEqual(['f3', [['Name', 'f3']]]);
  });
  it('show and save the rows in one order', () => {
    const [column] = inOrder([textColumn(bare, (row) => `f${row}`)], [2, 0, 1]);
    expect([0, 1, 2].map((place) => [column?.cell(place), column?.saved[0]?.value(place)])).toEqual([['f2', 'f2'], ['f0', 'f0'], ['f1', 'f1']]);
  });
});
