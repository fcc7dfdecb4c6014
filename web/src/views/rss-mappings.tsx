// The mappings of a moment: added up by who asked for them, or each one.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Rss } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatCount, formatMs, formatPercent } from '../base/format';
import { baseName, locationName, NO_CODE, type CodeName } from '../model/code';
import { hasMemory, ownersOf, type Owner } from '../model/mapping-owners';
import { go } from '../state/app-state';
import { useAddress } from '../state/hooks';
import { useCodeMenu } from './code-menu';
import { CodeLink, CodeText, nameText, openFunction } from './parts/code-label';
import { Choice } from './parts/controls';
import { DataTable, inOrder, textColumn, type Column } from './parts/data-table';
import { useCapability } from './parts/meta-context';
import { Notice } from './parts/pane';
import { useSubject } from './parts/subject';

export function numberColumn(key: string, title: string, unit: 'bytes' | 'ms' | '', widthPx: number, value: (row: number) => number): Column {
  const format = { bytes: formatBytes, ms: formatMs, '': formatCount }[unit];
  return {
    key,
    title,
    widthPx,
    numeric: true,
    cell: (row) => <span class="breakdown-number">{format(value(row))}</span>,
    saved: [{ head: unit === '' ? title : `${title} (${unit})`, value }],
  };
}

/** `name`: null for a mapping that the kernel or the loader made. */
export function siteColumn(column: Omit<Column, 'cell' | 'saved' | 'key'>, name: (row: number) => CodeName | null): Column {
  const cell = (found: CodeName | null): JSX.Element | string => (found === null ? '' : <CodeText name={found} />);
  const saved = (found: CodeName | null): string => (found === null ? '' : nameText(found));
  return { ...column, key: 'location', cell: (row) => cell(name(row)), saved: [{ head: column.title, value: (row) => saved(name(row)) }] };
}

/** The bytes, over a bar of their share of RSS. */
function rssColumn(total: number, value: (row: number) => number): Column {
  return {
    key: 'rss',
    title: 'RSS',
    widthPx: 150,
    narrowPx: 96,
    numeric: true,
    cell: (row) => (
      <span class="cost" title={`${formatPercent(value(row), total)} of ${formatBytes(total)}`}>
        <span class="cost-bar" style={{ width: `${((value(row) / Math.max(total, 1)) * 100).toFixed(2)}%` }} />
        <span class="cost-value">{formatBytes(value(row))}</span>
        <span class="cost-share">{formatPercent(value(row), total)}</span>
      </span>
    ),
    saved: [{ head: 'RSS (bytes)', value }],
  };
}

function kindPhrase({ kinds }: Rss, key: string): string {
  return kinds.phrase[kinds.key.indexOf(key)] ?? key;
}

function OwnerTable(props: { readonly answer: Rss }): JSX.Element {
  const { answer } = props;
  const { code } = answer;
  const owners = useMemo(() => ownersOf(answer.mappings), [answer]);
  const openMenu = useCodeMenu();
  const owner = (row: number): Owner => owners[row] ?? { location: null, path: '', kind: '', areas: 0, rss: 0, virtual: 0, swap: 0 };
  const site = (row: number): CodeName => (owner(row).location === null ? NO_CODE : locationName(code, owner(row).location));
  const text = (row: number): string => (owner(row).path === '' ? kindPhrase(answer, owner(row).kind) : owner(row).path);
  const { selected, isAbout, select } = useSubject(owners.length, site, answer);
  const total = owners.reduce((sum, each) => sum + each.rss, 0);
  const columns: readonly Column[] = [
    rssColumn(total, (row) => owner(row).rss),
    {
      key: 'owner',
      title: 'Mapped by, or for',
      help: 'the call site that mapped it; the file; or what the allocator and the kernel use it for',
      widthPx: 240,
      narrowPx: 140,
      grows: true,
      cell: (row) =>
        owner(row).location !== null ? (
          <CodeLink name={site(row)} />
        ) : (
          <span class="group-text" title={text(row)}>
            {owner(row).path === '' ? text(row) : <span class="mono">{baseName(text(row))}</span>}
          </span>
        ),
      saved: [{ head: 'Mapped by, or for', value: (row) => (owner(row).location === null ? text(row) : nameText(site(row))) }],
    },
    textColumn({ key: 'kind', title: 'Kind', widthPx: 176, narrowPx: 120, spare: 2 }, (row) => kindPhrase(answer, owner(row).kind)),
    numberColumn('areas', 'Areas', '', 62, (row) => owner(row).areas),
    { ...numberColumn('virtual', 'Virtual', 'bytes', 90, (row) => owner(row).virtual), spare: 3 },
    { ...numberColumn('swap', 'Swapped', 'bytes', 84, (row) => owner(row).swap), spare: 4 },
  ];
  return (
    <DataTable
      label="Mappings by owner"
      columns={columns}
      count={owners.length}
      selected={selected}
      isAbout={isAbout}
      onSelect={select}
      onMenu={(row, place) => (owner(row).location === null ? undefined : openMenu(site(row), place))}
      onActivate={(row) => (owner(row).location === null ? undefined : openFunction(site(row)))}
    />
  );
}

function EachTable(props: { readonly answer: Rss }): JSX.Element {
  const { answer } = props;
  const { mappings, code } = answer;
  const rows = range(mappings.count)
    .filter((row) => hasMemory(mappings, row))
    .sort((a, b) => at(mappings.rss_bytes, b) - at(mappings.rss_bytes, a));
  const [selected, setSelected] = useState(-1);
  const columns: readonly Column[] = [
    textColumn({ key: 'path', title: 'Mapping', widthPx: 200, narrowPx: 120, grows: true }, (row) => mappings.path[row] || 'anonymous', (path) => <span class="mono group-text" title={path}>{path}</span>),
    textColumn({ key: 'kind', title: 'Kind', widthPx: 176, narrowPx: 150 }, (row) => kindPhrase(answer, mappings.kind[row] ?? '')),
    siteColumn({ title: 'Mapped by', help: 'the call site, if the program mapped it itself', widthPx: 280, narrowPx: 130 }, (row) => ((mappings.location[row] ?? null) === null ? null : locationName(code, mappings.location[row]))),
    numberColumn('areas', 'Areas', '', 62, (row) => at(mappings.areas, row)),
    numberColumn('rss', 'RSS', 'bytes', 90, (row) => at(mappings.rss_bytes, row)),
    { ...numberColumn('virtual', 'Virtual', 'bytes', 90, (row) => at(mappings.virtual_bytes, row)), spare: 1 },
    { ...numberColumn('swap', 'Swapped', 'bytes', 84, (row) => at(mappings.swap_bytes, row)), spare: 2 },
  ];
  return <DataTable label="Mappings" columns={inOrder(columns, rows)} count={rows.length} selected={selected} onSelect={setSelected} />;
}

const WAYS = [
  { value: '', label: 'by owner' },
  { value: 'each', label: 'each' },
] as const;

export function Mappings(props: { readonly answer: Rss }): JSX.Element {
  const { answer } = props;
  const { mappings_by } = useAddress();
  const hasMappings = useCapability('mappings');
  if (!hasMappings) {
    return <Notice>This recording has no table of mappings.</Notice>;
  }
  return (
    <>
      <div class="toolbar mappings-head">
        {answer.moment_ms === null ? null : <h2>{`Mappings after ${formatMs(answer.moment_ms)}`}</h2>}
        <Choice label="Mappings" value={mappings_by} options={WAYS} onChange={(value) => go({ mappings_by: value })} />
      </div>
      {mappings_by === 'each' ? <EachTable answer={answer} /> : <OwnerTable answer={answer} />}
    </>
  );
}
