// A table as text for other programs: CSV (RFC 4180) or TSV. Text that a spreadsheet could take for a
// formula gets an apostrophe before it, as in `cairn report --csv`. Pure.
import { range } from '../base/columns';

export type Cell = string | number;
export type TableFormat = 'csv' | 'tsv';

/** What a file has of a column on the page: a column with a whole text or one exact number a row. */
export interface SavedColumn {
  /** Ends with the unit of its numbers: "Last (ms)". */
  readonly head: string;
  readonly value: (row: number) => Cell;
  /** Where this cost is unknown, so are the numbers. */
  readonly cost?: string;
}

/** What the cells of the rows say in a file; `tells` says whether a cost is known. */
export function savedRows(columns: readonly SavedColumn[], count: number, tells: (cost: string) => boolean): readonly (readonly Cell[])[] {
  return range(count).map((row) => columns.map(({ value, cost }) => (cost === undefined || tells(cost) ? value(row) : 'unknown')).map((cell) => (isUnknown(cell) ? 'unknown' : cell)));
}

/** In CSV a cell with a separator, a quote or a line break is quoted; TSV has spaces instead. */
function cellText(cell: Cell, format: TableFormat): string {
  const text = typeof cell === 'string' && /^[=+\-@]/.test(cell) ? `'${cell}` : String(cell);
  if (format === 'tsv') {
    return text.replace(/[\t\r\n]+/g, ' ');
  }
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** An unknown figure is NaN (api/decode.ts). */
function isUnknown(cell: Cell): boolean {
  return typeof cell === 'number' && Number.isNaN(cell);
}

export function tableText(heads: readonly string[], rows: readonly (readonly Cell[])[], format: TableFormat): string {
  const separator = format === 'csv' ? ',' : '\t';
  return [heads, ...rows].map((row) => `${row.map((cell) => cellText(cell, format)).join(separator)}\n`).join('');
}
