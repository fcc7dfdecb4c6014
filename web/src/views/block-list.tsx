// Single blocks with their addresses, of a recording that lists them: live at the end, or at the peak.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { blocks as blocksAnswer, type Blocks } from '../api/block-answers';
import { at, range } from '../base/columns';
import { formatBytes, formatMs } from '../base/format';
import { locationName, type CodeName } from '../model/code';
import { stackParams, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAsk } from '../state/hooks';
import { useCodeMenu } from './code-menu';
import { CodeText, nameText, openFunction } from './parts/code-label';
import { Choice } from './parts/controls';
import { DataTable, inOrder, textColumn, type Column } from './parts/data-table';
import { useHasEnded } from './parts/live-when';
import { Pane } from './parts/pane';
import { useSubject } from './parts/subject';

const LIMIT = '10000';

type Table = Blocks['end'];

function numberColumn(key: string, title: string, unit: string, widthPx: number, value: (row: number) => number, text: (row: number) => string): Column {
  return { key, title, widthPx, numeric: true, sortable: true, cell: (row) => <span class="leaks-number">{text(row)}</span>, saved: [{ head: `${title} (${unit})`, value }] };
}

const SORTS: Readonly<Record<string, (table: Table, row: number) => number>> = {
  size: (table, row) => at(table.size_bytes, row),
  address: (table, row) => -at(table.address, row),
  born: (table, row) => -at(table.born_ms, row),
  age: (table, row) => at(table.age_ms, row),
};

/** The exact digits of an address: numbers above 2^53 do not occur in user space. */
function hex(address: number): string {
  return `0x${address.toString(16)}`;
}

function BlockTable(props: { readonly answer: Blocks; readonly at: string }): JSX.Element {
  const { answer } = props;
  const table = props.at === 'peak' ? answer.peak : answer.end;
  const [sortBy, setSortBy] = useState('size');
  const openMenu = useCodeMenu();
  const order = useMemo(() => range(table.count).sort((a, b) => (SORTS[sortBy]?.(table, b) ?? 0) - (SORTS[sortBy]?.(table, a) ?? 0)), [table, sortBy]);
  const site = (row: number): CodeName => locationName(answer.code, table.location[row]);
  const { selected, isAbout, select } = useSubject(table.count, (place) => site(at(order, place)), order);
  const columns: readonly Column[] = [
    { ...textColumn({ key: 'address', title: 'Address', widthPx: 132, narrowPx: 116, sortable: true }, (row) => hex(at(table.address, row)), (text) => <span class="mono">{text}</span>) },
    numberColumn('size', 'Size', 'bytes', 84, (row) => at(table.size_bytes, row), (row) => formatBytes(at(table.size_bytes, row))),
    { ...numberColumn('born', 'Allocated', 'ms', 92, (row) => at(table.born_ms, row), (row) => formatMs(at(table.born_ms, row))), spare: 3 },
    { ...numberColumn('age', 'Age', 'ms', 84, (row) => at(table.age_ms, row), (row) => formatMs(at(table.age_ms, row))), spare: 2 },
    { key: 'name', title: 'Call site', widthPx: 214, narrowPx: 130, grows: true, cell: (row) => <CodeText name={site(row)} />, saved: [{ head: 'Call site', value: (row) => nameText(site(row)) }] },
    textColumn({ key: 'thread', title: 'Thread', widthPx: 130, spare: 1 }, (row) => `${table.thread[row] ?? ''} (${at(table.thread_id, row)})`),
  ];
  return (
    <DataTable
      label="Single blocks"
      columns={inOrder(columns, order)}
      count={table.count}
      selected={selected}
      isAbout={isAbout}
      sortBy={sortBy}
      onSort={setSortBy}
      onSelect={select}
      onMenu={(place, menuPlace) => openMenu(site(at(order, place)), menuPlace)}
      onActivate={(place) => openFunction(site(at(order, place)))}
      empty="No block passes."
    />
  );
}

export function BlocksAt(props: { readonly address: Address }): JSX.Element {
  const hasEnded = useHasEnded();
  return (
    <Choice
      label="Blocks"
      value={props.address.blocks_at}
      options={[
        { value: '', label: hasEnded ? 'live at the end' : 'live now' },
        { value: 'peak', label: 'live at the peak' },
      ]}
      onChange={(blocks_at) => go({ blocks_at })}
    />
  );
}

export function BlockList(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const asked = useAsk('blocks', { ...stackParams(address), size_min_bytes: address.size_min_bytes, size_max_bytes: address.size_max_bytes, limit: LIMIT }, blocksAnswer);
  return (
    <Pane asked={asked} label="Single blocks">
      {(answer) => <BlockTable answer={answer} at={address.blocks_at} />}
    </Pane>
  );
}
