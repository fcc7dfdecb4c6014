// A source file with the cost of each line.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { source as sourceAnswer } from '../api/answers';
import type { Decoded } from '../api/decode';
import { at } from '../base/columns';
import { costTitle, costWidthPx, TABLE_COSTS } from '../model/cost';
import { filterParams, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { CostSelect } from './parts/controls';
import { CostCell } from './parts/cost-cell';
import { DataTable, type Column } from './parts/data-table';
import { Notice, Pane } from './parts/pane';
import './source.css';

type Source = Decoded<typeof sourceAnswer>;

function columnsOf(source: Source, lines: readonly string[] | null, cost: string): readonly Column[] {
  const rowOfLine = new Map(source.lines.line.map((line, row) => [line, row]));
  const highest = Math.max(1, ...(source.lines.inclusive[cost] ?? []));
  const lineAt = (row: number): number => (lines === null ? at(source.lines.line, row) : row + 1);
  const costColumn = (key: 'self' | 'inclusive', title: string): Column => ({
    key,
    title,
    widthPx: costWidthPx(cost, false),
    numeric: true,
    cell: (row) => {
      const entry = rowOfLine.get(lineAt(row));
      return entry === undefined ? '' : <CostCell cost={cost} value={at(source.lines[key][cost], entry)} total={highest} />;
    },
  });
  return [
    costColumn('self', `${costTitle(cost)}, self`),
    costColumn('inclusive', 'Inclusive'),
    { key: 'line', title: 'Line', widthPx: 58, numeric: true, cell: (row) => <span class="source-line">{lineAt(row)}</span> },
    { key: 'text', title: 'Source', widthPx: 400, grows: true, cell: (row) => <code class="source-text">{lines?.[row] ?? ''}</code> },
  ];
}

function SourceTable(props: { readonly source: Source; readonly address: Address }): JSX.Element {
  const { source, address } = props;
  const lines = useMemo(() => (source.text === null ? null : source.text.split('\n')), [source]);
  const [selected, setSelected] = useState(-1);
  useEffect(() => setSelected(lines === null ? 0 : Math.max(Number(address.line) - 1, 0)), [source, address.line]);
  return (
    <>
      {source.is_readable ? null : <Notice>{`The file cannot be shown: ${source.reason ?? 'unknown reason'}.`}</Notice>}
      {source.is_newer ? <Notice>The file was changed after the recording began: lines may have moved.</Notice> : null}
      <DataTable
        label={`Source ${source.path}`}
        columns={columnsOf(source, lines, address.cost)}
        count={lines === null ? source.lines.count : lines.length}
        selected={selected}
        onSelect={setSelected}
      />
    </>
  );
}

export function SourceView(): JSX.Element {
  const address = useAddress();
  const asked = useAsk(
    address.path === '' ? null : 'source',
    { ...filterParams(address), file_path: address.path, costs: TABLE_COSTS.join(',') },
    sourceAnswer,
  );
  if (address.path === '') {
    return <Notice>Choose a source line in a stack or in Caller / Callee: its file is shown here with what its lines cost.</Notice>;
  }
  return (
    <div class="view">
      <div class="toolbar">
        <CostSelect value={address.cost} costs={TABLE_COSTS} onChange={(cost) => go({ cost })} />
        <span class="mono">{address.path}</span>
      </div>
      <Pane asked={asked} label="Source">
        {(source) => <SourceTable source={source} address={address} />}
      </Pane>
    </div>
  );
}
