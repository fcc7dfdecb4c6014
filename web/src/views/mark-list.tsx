// The marks as text, with links to the heap at that time and since then. Many are a table, which has only the
// rows in sight in the document.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { formatMs } from '../base/format';
import { markText, type Mark } from '../model/mark';
import { FEW_MARKS } from '../model/mark-density';
import { showMoment, showSince } from '../state/app-state';
import { DataTable, type Column } from './parts/data-table';
import { useCapability, useMeta } from './parts/meta-context';
import './charts.css';

function Since(props: { readonly mark: Mark }): JSX.Element {
  return (
    <button type="button" class="link marks-since" title="What was allocated since then and not freed" onClick={() => showSince(props.mark.time_ms)}>
      since
    </button>
  );
}

function MarkTable(props: { readonly marks: readonly Mark[]; readonly canBrush: boolean }): JSX.Element {
  const { marks, canBrush } = props;
  const [selected, setSelected] = useState(-1);
  const timeMs = (row: number): number => marks[row]?.time_ms ?? 0;
  const columns: readonly Column[] = [
    { key: 'time', title: 'Time', widthPx: 96, cell: (row) => formatMs(timeMs(row)), saved: [{ head: 'Time (ms)', value: timeMs }] },
    {
      key: 'mark',
      title: 'Mark',
      widthPx: 200,
      grows: true,
      cell: (row) => (
        <button type="button" class="link mark-text" disabled={!canBrush} title={marks[row]?.text ?? ''} onClick={() => showMoment(timeMs(row))}>
          {marks[row] === undefined ? '' : markText(marks[row])}
        </button>
      ),
      saved: [{ head: 'Mark', value: (row) => marks[row]?.text ?? '' }],
    },
    ...(canBrush ? [{ key: 'since', title: 'Filter', widthPx: 64, cell: (row: number) => (marks[row] === undefined ? null : <Since mark={marks[row]} />), saved: [] }] : []),
  ];
  return (
    <div class="mark-table">
      <DataTable label="Marks" columns={columns} count={marks.length} selected={selected} onSelect={setSelected} onActivate={(row) => (canBrush ? showMoment(timeMs(row)) : undefined)} />
    </div>
  );
}

export function MarkList(): JSX.Element | null {
  const { marks } = useMeta();
  const canBrush = useCapability('time_range');
  if (marks.length === 0) {
    return null;
  }
  if (marks.length > FEW_MARKS) {
    return <MarkTable marks={marks} canBrush={canBrush} />;
  }
  return (
    <ul class="marks" aria-label="Marks">
      {marks.map((mark, index) => (
        <li key={index}>
          <button type="button" disabled={!canBrush} title="The heap as it stood then" onClick={() => showMoment(mark.time_ms)}>
            {`${formatMs(mark.time_ms)}: ${markText(mark)}`}
          </button>
          {canBrush ? <Since mark={mark} /> : null}
        </li>
      ))}
    </ul>
  );
}
