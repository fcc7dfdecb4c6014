// Saves the rows of a table as CSV or TSV: exact numbers and whole names, as they are ordered and
// unfolded on the page.
import type { JSX } from 'preact';
import { formatCountOf } from '../../base/format';
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
    </p>
  );
}
