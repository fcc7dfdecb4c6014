// A source file with the cost of each line.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { files as filesAnswer, health as healthAnswer, source as sourceAnswer } from '../api/answers';
import type { Decoded } from '../api/decode';
import { inReport } from '../api/report-file';
import { at, range } from '../base/columns';
import { formatPercent } from '../base/format';
import { baseName, editorLink, NO_CODE } from '../model/code';
import { ALL_COSTS, costTitle, formatCost, type LiveWhen } from '../model/cost';
import { filterParams, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk, type Asked } from '../state/hooks';
import { filesParams } from '../state/questions';
import { CostSelect } from './parts/controls';
import { costColumn, errorAt } from './parts/cost-cell';
import { DataTable, inOrder, textColumn, type Column } from './parts/data-table';
import { useLiveWhen } from './parts/live-when';
import { useCapability, useMeta } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import './source.css';

/** Of a cost without source lines, from which on it is said. */
const UNCOVERED_SHARE = 0.1;
const MOST_BARE = 3;

type Source = Decoded<typeof sourceAnswer>;

function columnsOf(source: Source, lines: readonly string[] | null, cost: string, when: LiveWhen): readonly Column[] {
  const rowOfLine = new Map(source.lines.line.map((line, row) => [line, row]));
  const total = source.selection.totals[cost] ?? 0;
  const highest = Math.max(1, ...(source.lines.inclusive[cost] ?? []));
  const lineAt = (row: number): number => (lines === null ? at(source.lines.line, row) : row + 1);
  const isCompared = source.lines.old_self !== null;
  const hasErrors = (source.lines.self_errors ?? source.lines.old_self_errors) !== null;
  const lineCost = (key: 'self' | 'inclusive', title: string): Column => {
    const old = source.lines[`old_${key}`];
    const column = costColumn(cost, { title, isDiff: isCompared, hasErrors }, (row) => {
      const entry = rowOfLine.get(lineAt(row));
      return entry === undefined
        ? { value: 0, total, old: old === null ? undefined : 0 }
        : {
            value: at(source.lines[key][cost], entry),
            total,
            old: old === null ? undefined : at(old[cost], entry),
            error: errorAt(source.lines[`${key}_errors`], cost, entry),
            oldError: errorAt(source.lines[`old_${key}_errors`], cost, entry),
          };
    });
    return { ...column, key, cell: (row) => (rowOfLine.has(lineAt(row)) ? column.cell(row) : '') };
  };
  const heat = (row: number): number => {
    const entry = rowOfLine.get(lineAt(row));
    return entry === undefined ? 0 : at(source.lines.inclusive[cost], entry) / highest;
  };
  return [
    lineCost('self', `${costTitle(cost, when)}, self`),
    { ...lineCost('inclusive', 'Inclusive'), spare: 1 },
    { key: 'line', title: 'Line', widthPx: 58, numeric: true, cell: (row) => <span class="source-line">{lineAt(row)}</span>, saved: [{ head: 'Line', value: lineAt }] },
    textColumn({ key: 'text', title: 'Source', widthPx: 400, grows: true }, (row) => lines?.[row] ?? '', (text, row) => (
      <code class="source-text" style={{ background: `color-mix(in srgb, var(--heat) ${(heat(row) * 100).toFixed(1)}%, transparent)` }}>
        {text}
      </code>
    )),
  ];
}

/** The line whose call sites cost most; 0: there is none. */
function costliestLine({ lines }: Source, cost: string): number {
  const self = lines.self[cost] ?? [];
  const most = Math.max(0, ...self);
  return most === 0 ? 0 : at(lines.line, self.indexOf(most));
}

function SourceTable(props: { readonly source: Source; readonly address: Address }): JSX.Element {
  const { source, address } = props;
  const first = costliestLine(source, address.cost);
  const lines = useMemo(() => (source.text === null ? null : source.text.split('\n')), [source]);
  const [selected, setSelected] = useState(-1);
  useEffect(() => {
    const line = address.line === '' ? first : Number(address.line);
    setSelected(Math.max(lines === null ? source.lines.line.indexOf(line) : line - 1, 0));
  }, [source, address.line, first]);
  return (
    <>
      {source.is_readable ? null : <Notice>{`The file cannot be shown: ${source.reason ?? 'unknown reason'}.`}</Notice>}
      {source.lines.old_self === null ? null : <Notice>Lines with the same number are compared. If the file changed between the recordings, lines may have moved.</Notice>}
      {source.is_newer ? <Notice>The file was changed after the recording began: lines may have moved.</Notice> : null}
      <DataTable
        label={`Source ${source.path}`}
        columns={columnsOf(source, lines, address.cost, useLiveWhen())}
        count={lines === null ? source.lines.count : lines.length}
        selected={selected}
        onSelect={(row) => {
          setSelected(row);
          go({ line: String(lines === null ? at(source.lines.line, row) : row + 1) }, 'refine');
        }}
      />
    </>
  );
}

type Files = Decoded<typeof filesAnswer>;

/** The files with a cost, highest first. */
function costlyRows({ groups }: Files, cost: string): readonly number[] {
  return range(groups.count)
    .filter((row) => groups.name[row] !== '' && at(groups.costs[cost], row) > 0)
    .sort((a, b) => at(groups.costs[cost], b) - at(groups.costs[cost], a));
}

/** The file that is shown before one is chosen: the costliest, unless it hardly has a cost. "": none. */
function firstFile(files: Files | null, cost: string): string {
  const row = files === null ? undefined : costlyRows(files, cost)[0];
  return files === null || row === undefined || at(files.groups.costs[cost], row) < (files.selection.totals[cost] ?? 0) / 100 ? '' : (files.groups.name[row] ?? '');
}

/** The source files of the recording, by the cost of the call sites in them. */
function FileList(props: { readonly asked: Asked<Files>; readonly path: string; readonly address: Address }): JSX.Element {
  const { asked, path, address } = props;
  const when = useLiveWhen();
  return (
    <aside class="source-files" aria-label="Source files">
      <Pane asked={asked} label="Source files">
        {(files) => {
          const { groups, selection } = files;
          const { cost } = address;
          const rows = costlyRows(files, cost);
          const name = (row: number): string => groups.name[row] ?? '';
          return (
            <DataTable
              label="Files"
              columns={inOrder([
                { key: 'file', title: 'File', widthPx: 110, grows: true, cell: (row) => <span class="mono group-text" title={name(row)}>{baseName(name(row))}</span>, saved: [{ head: 'File', value: name }] },
                costColumn(cost, { title: costTitle(cost, when), isDiff: false, hasErrors: groups.errors !== null }, (row) => ({ value: at(groups.costs[cost], row), total: selection.totals[cost] ?? 0, error: errorAt(groups.errors, cost, row) })),
              ], rows)}
              count={rows.length}
              selected={rows.findIndex((row) => name(row) === path)}
              onSelect={(place) => go({ path: name(at(rows, place)), line: '' }, 'refine')}
              empty="No call site has a source file."
            />
          );
        }}
      </Pane>
    </aside>
  );
}

function OneFile(props: { readonly path: string; readonly address: Address }): JSX.Element {
  const { path, address } = props;
  const { editor } = useMeta();
  const asked = useAsk(
    path === '' ? null : 'source',
    { ...filterParams(address), file_path: path, costs: ALL_COSTS.join(','), diff: address.diff },
    sourceAnswer,
  );
  if (path === '') {
    return <Notice>Choose a file, or a source line in a stack or in Caller / Callee: the file is shown with the costs of its lines.</Notice>;
  }
  const href = editorLink(editor, { ...NO_CODE, file: path, line: Number(address.line) });
  return (
    <div class="source-file">
      <p class="mono">
        {path}{' '}
        {href === null ? null : (
          <a href={href} class="code-editor">
            edit
          </a>
        )}
      </p>
      <Pane asked={asked} label="Source">
        {(source) => <SourceTable source={source} address={address} />}
      </Pane>
    </div>
  );
}

/** How much of the cost has no source lines, and how to get them. */
function Uncovered(props: { readonly files: Files; readonly cost: string }): JSX.Element | null {
  const { files, cost } = props;
  const when = useLiveWhen();
  const total = files.selection.totals[cost] ?? 0;
  const known = costlyRows(files, cost).reduce((sum, row) => sum + at(files.groups.costs[cost], row), 0);
  const isMuch = total > 0 && total - known > total * UNCOVERED_SHARE;
  const asked = useAsk(isMuch ? 'health' : null, {}, healthAnswer);
  if (!isMuch) {
    return null;
  }
  const modules = asked.value?.modules ?? null;
  const bare = modules === null ? [] : range(modules.count).filter((row) => at(modules.frames_with_line, row) === 0 && at(modules.frames, row) > 0).sort((a, b) => at(modules.frames, b) - at(modules.frames, a));
  const names = bare.slice(0, MOST_BARE).map((row) => modules?.name[row] ?? '');
  const advice = [...new Set(bare.map((row) => modules?.symbol_advice[row] ?? '').filter((text) => text !== ''))].slice(0, 2);
  return (
    <Notice>
      <span data-testid="uncovered">
        {`${formatPercent(total - known, total)} of ${costTitle(cost, when)} (${formatCost(cost, total - known)}) has no source lines: `}
        {names.length === 0 ? 'its call sites are in code without debug information. ' : `${names.join(', ')}${bare.length > names.length ? ` and ${bare.length - names.length} more modules` : ''} ${bare.length === 1 ? 'has' : 'have'} no debug information. `}
        {advice.length === 0
          ? 'Compile with -g, or install the debug package of the program (on Debian NAME-dbgsym, or set DEBUGINFOD_URLS), and record or open it again.'
          : `Compile with -g, or ${advice.join('; or ')}, and record or open it again.`}
      </span>
    </Notice>
  );
}

export function SourceView(): JSX.Element {
  const address = useAddress();
  const asked = useAsk('files', { ...filesParams(address), ...(inReport() ? { sort: '' } : {}) }, filesAnswer);
  const hasSource = useCapability('source');
  const path = address.path === '' && hasSource ? firstFile(asked.value, address.cost) : address.path;
  return (
    <div class="view">
      <div class="toolbar">
        <CostSelect value={address.cost} costs={ALL_COSTS} onChange={(cost) => go({ cost })} />
        <span class="soft">Files by the cost of their call sites. Self: of those on a line. Inclusive: of all stacks through it; the redder, the more.</span>
      </div>
      {asked.value === null ? null : <Uncovered files={asked.value} cost={address.cost} />}
      <div class="split">
        <FileList asked={asked} path={path} address={address} />
        <OneFile path={path} address={address} />
      </div>
    </div>
  );
}
