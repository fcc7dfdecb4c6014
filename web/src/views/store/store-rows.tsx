// The table of a store's answer. The names of its columns say what the values are, as in
// `cairn store`: NAME_bytes, NAME_ms, change_NAME, and `time` in seconds since 1970.
import type { JSX } from 'preact';
import type { StoreTable } from '../../api/store-answers';
import { formatBytes, formatChange, formatCount, formatMs } from '../../base/format';
import { costTitle } from '../../model/cost';

type Value = string | number | null | undefined;

const TITLES: Readonly<Record<string, string>> = { runtime_ms: 'Runtime', is_oom: 'Out of memory' };

// A store does not say beside it whether a program had ended: what is live then need not be leaked.
const LIVE: Readonly<Record<string, string>> = {
  live_bytes: 'Live at the end',
  live_blocks: 'Blocks live at the end',
};

/** The title of a cost in a store. */
export function storeCostTitle(name: string): string {
  return LIVE[name] ?? costTitle(name);
}

function titleOf(column: string): string {
  const match = /^(old|new|change|host|others|cost)_(.+)$/.exec(column);
  if (match !== null) {
    return `${storeCostTitle(match[2] ?? '')}, ${match[1] ?? ''}`;
  }
  const title = TITLES[column] ?? storeCostTitle(column).replaceAll('_', ' ');
  return title.charAt(0).toUpperCase() + title.slice(1);
}

function numberText(column: string, value: number): string {
  const format = column.endsWith('_bytes') ? formatBytes : column.endsWith('_ms') ? formatMs : formatCount;
  if (column === 'time') {
    return new Date(value * 1000).toISOString().replace('.000Z', 'Z');
  }
  if (column === 'line' || !Number.isInteger(value)) {
    return String(value);
  }
  return value < 0 || column.startsWith('change_') ? formatChange(value, format) : format(value);
}

function cellText(column: string, value: Value): string {
  if (column.startsWith('is_')) {
    return value === 1 ? 'yes' : 'no';
  }
  return typeof value === 'number' ? numberText(column, value) : (value ?? '-');
}

export function StoreRows(props: { readonly label: string; readonly table: StoreTable; readonly onOpen: (id: string) => void }): JSX.Element {
  const { table } = props;
  const columns = table.columns.filter((column) => column !== 'recording_id');
  const hasIds = table.columns.includes('recording_id');
  if (table.rows.length === 0) {
    return <p class="soft">The store has nothing that matches.</p>;
  }
  return (
    <div class="store-frame">
      <table class="store-table" aria-label={props.label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {titleOf(column)}
              </th>
            ))}
            {hasIds ? <th scope="col">Recording</th> : null}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column} class={typeof row[column] === 'number' ? 'store-number' : ''} title={String(row[column] ?? '')}>
                  {cellText(column, row[column])}
                </td>
              ))}
              {hasIds ? (
                <td>
                  <button type="button" onClick={() => props.onOpen(String(row['recording_id'] ?? ''))}>
                    Open
                  </button>
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
      {table.more === 0 ? null : <p class="soft">{`and ${formatCount(table.more)} more`}</p>}
    </div>
  );
}
