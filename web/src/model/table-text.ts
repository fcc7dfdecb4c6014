// A table as text for other programs: CSV (RFC 4180) or TSV. Pure.

export type Cell = string | number;
export type TableFormat = 'csv' | 'tsv';

/** In CSV a cell with a separator, a quote or a line break is quoted; TSV has spaces instead. */
function cellText(cell: Cell, format: TableFormat): string {
  const text = String(cell);
  if (format === 'tsv') {
    return text.replace(/[\t\r\n]+/g, ' ');
  }
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function tableText(heads: readonly string[], rows: readonly (readonly Cell[])[], format: TableFormat): string {
  const separator = format === 'csv' ? ',' : '\t';
  return [heads, ...rows].map((row) => `${row.map((cell) => cellText(cell, format)).join(separator)}\n`).join('');
}
