// Saves the rows of a table as CSV or TSV: exact numbers and whole names, as they are ordered and
// unfolded on the page.
import type { ComponentChildren, JSX, VNode } from 'preact';
import { isValidElement } from 'preact';
import { range } from '../../base/columns';
import { formatCountOf } from '../../base/format';
import { fileLine, type CodeName } from '../../model/code';
import { tableText, type Cell, type TableFormat } from '../../model/table-text';
import { CodeLink, CodeText, PlaceLinks } from './code-label';
import { CostCell } from './cost-cell';
import type { Column, DataTableProps } from './data-table';
import { useSaveFile } from './save-file';
import { useTells } from './unknown-costs';

type Tells = (cost: string) => boolean;

function isNode<P>(node: ComponentChildren | VNode<P>, type: (props: P) => unknown): node is VNode<P> {
  return isValidElement(node) && node.type === type;
}

function nameText(name: CodeName, withName: boolean): string {
  return [withName ? name.full : '', fileLine(name)].filter((part) => part !== '').join(' ');
}

/** The values of a cell: two for a cost of a comparison, old and new. */
function valuesOf(node: ComponentChildren, tells: Tells): readonly Cell[] {
  if (isNode(node, CostCell)) {
    const { cost, value, old } = node.props;
    const told = (number: number): Cell => (tells(cost) ? number : 'unknown');
    return old === undefined ? [told(value)] : [told(old), told(value)];
  }
  if (isNode(node, CodeText) || isNode(node, CodeLink)) {
    return [nameText(node.props.name, true)];
  }
  if (isNode(node, PlaceLinks)) {
    return [nameText(node.props.name, false)];
  }
  if (isValidElement(node)) {
    return valuesOf(node.props.children, tells);
  }
  if (Array.isArray(node)) {
    return [node.flatMap((part: ComponentChildren) => valuesOf(part, tells)).join('')];
  }
  return [typeof node === 'string' || typeof node === 'number' ? node : ''];
}

function headsOf(column: Column, node: ComponentChildren): readonly string[] {
  const head = column.title.replace(/: old, new, change$/, '');
  return isNode(node, CostCell) && node.props.old !== undefined ? [`${head} before`, head] : [head];
}

function textOf(table: DataTableProps, tells: Tells, format: TableFormat): string {
  const columns = table.columns.filter((column) => column.key !== 'filter');
  const level = table.level === undefined ? [] : ['Level'];
  const heads = [...level, ...columns.flatMap((column) => headsOf(column, table.count === 0 ? null : column.cell(0)))];
  const rows = range(table.count).map((row) => [
    ...(table.level === undefined ? [] : [table.level(row)]),
    ...columns.flatMap((column) => valuesOf(column.cell(row), tells)),
  ]);
  return tableText(heads, rows, format);
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
