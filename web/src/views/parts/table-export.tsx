// Saves the rows of a table as CSV or TSV: exact numbers and whole names, as they are ordered and
// unfolded on the page.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { range } from '../../base/columns';
import { formatCount, formatCountOf } from '../../base/format';
import { savedRows, tableText, type SavedColumn, type TableFormat } from '../../model/table-text';
import type { DataTableProps } from './data-table';
import { useSaveFile } from './save-file';
import { useTells } from './unknown-costs';

function textOf(table: DataTableProps, tells: (cost: string) => boolean, format: TableFormat): string {
  const { level } = table;
  const columns: readonly SavedColumn[] = [
    ...(level === undefined ? [] : [{ head: 'Level', value: level }]),
    ...table.columns.flatMap((column) => column.saved),
  ];
  return tableText(columns.map(({ head }) => head), savedRows(columns, table.count, tells), format);
}

const FORMATS: readonly { readonly format: TableFormat; readonly label: string; readonly type: string }[] = [
  { format: 'csv', label: 'CSV', type: 'text/csv' },
  { format: 'tsv', label: 'TSV', type: 'text/tab-separated-values' },
];

/** The rows with a text, from the first one. */
function matchesOf(table: DataTableProps, text: string): readonly number[] {
  const wanted = text.toLowerCase();
  const columns = table.columns.flatMap((column) => column.saved);
  return range(table.count).filter((row) => columns.some((column) => typeof column.value(row) === 'string' && String(column.value(row)).toLowerCase().includes(wanted)));
}

/** Finds a text in the rows of the table: Enter goes to the next one, Shift+Enter to the one before. */
function TableFind(props: { readonly table: DataTableProps }): JSX.Element {
  const { table } = props;
  const [text, setText] = useState('');
  const [said, setSaid] = useState('');
  const find = (step: 1 | -1): void => {
    const rows = text === '' ? [] : matchesOf(table, text);
    const after = rows.findIndex((row) => row > table.selected);
    const before = rows.filter((row) => row < table.selected).length - 1;
    const next = step === 1 ? (after < 0 ? 0 : after) : before < 0 ? rows.length - 1 : before;
    const row = rows[next];
    if (row !== undefined) {
      table.onSelect(row);
    }
    setSaid(text === '' ? '' : row === undefined ? 'none' : `${formatCount(next + 1)} of ${formatCount(rows.length)}`);
  };
  return (
    <span class="table-find">
      <span class="soft" role="status">
        {said}
      </span>
      <input
        type="search"
        aria-label={`Find in ${table.label}`}
        placeholder="find in these rows"
        title="Enter: the next row with this text. Shift+Enter: the one before."
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setSaid('');
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') {
            event.preventDefault();
            find(event.shiftKey ? -1 : 1);
          } else if (event.key === 'Escape') {
            event.currentTarget.blur();
          }
        }}
      />
    </span>
  );
}

/** Tables below this size are seen whole. */
const FIND_FROM = 12;

export function TableExport(props: { readonly table: DataTableProps }): JSX.Element {
  const { table } = props;
  const saveFile = useSaveFile();
  const tells = useTells();
  const name = table.label.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return (
    <p class="table-foot">
      <span class="soft">{formatCountOf(table.count, 'row')}</span>
      {FORMATS.map(({ format, label, type }) => (
        <button
          key={format}
          type="button"
          class="link"
          title={`Save these rows as ${label}`}
          aria-label={`${table.label} as ${label}`}
          onClick={() => saveFile(`${name}.${format}`, new Blob([textOf(table, tells, format)], { type }))}
        >
          {label}
        </button>
      ))}
      {table.count < FIND_FROM ? null : <TableFind table={table} />}
    </p>
  );
}
