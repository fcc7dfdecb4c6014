// Live blocks at the end: by stack or call site, their growth over the run, and the suppressed
// part.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { leaks as leaksAnswer, type Leaks } from '../api/answers';
import { inReport } from '../api/report-file';
import { at, range } from '../base/columns';
import { formatByteRate, formatBytes, formatCount, formatCountOf, formatMs } from '../base/format';
import { locationName, type CodeName } from '../model/code';
import { costTitle, errorBeside, type LiveWhen } from '../model/cost';
import type { Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { leaksParams } from '../state/questions';
import { BlockList, BlocksAt } from './block-list';
import { useCodeMenu } from './code-menu';
import { FrameList } from './frame-list';
import { LeaksDiff } from './leaks-diff';
import { SiteStacks } from './site-stacks';
import { CodeText, nameText, openFunction } from './parts/code-label';
import { Choice } from './parts/controls';
import { costColumn, errorAt } from './parts/cost-cell';
import { DataTable, inOrder, type Column } from './parts/data-table';
import { useLiveWhen } from './parts/live-when';
import { useCapability } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { Spark } from './parts/spark';
import { useSubject } from './parts/subject';
import { useKnows } from './parts/unknown-costs';
import './leaks.css';

const GROWTH = [
  { value: '', label: 'All', help: '' },
  { value: 'growing', label: 'Growing', help: 'to the last, or as long as there was work: a leak, most likely' },
  { value: 'stopped', label: 'Stopped', help: 'it grew for a while, and then no more' },
  { value: 'start_up', label: 'Start-up', help: 'all that is left was allocated in the first eighth' },
  { value: 'bounded', label: 'Bounded', help: 'it is renewed all the time, and does not grow' },
  { value: 'sawtooth', label: 'Sawtooth', help: 'it rises and falls, and does not grow' },
  { value: 'bursts', label: 'Bursts', help: 'it is held now and then, and does not grow' },
  { value: 'late', label: 'Late', help: 'it came in the last tenth of what is recorded: too late to tell' },
  { value: 'once', label: 'Once', help: 'one block' },
  { value: 'unknown', label: 'Unknown', help: 'the run was too short, or has no time slices' },
] as const;

const COSTS = ['live_bytes', 'live_blocks'] as const;

/** The sort keys of the rows: all rows are loaded at once. */
const SORTS: Readonly<Record<string, (answer: Leaks, row: number) => number>> = {
  live_bytes: ({ leaks }, row) => at(leaks.costs['live_bytes'], row),
  live_blocks: ({ leaks }, row) => at(leaks.costs['live_blocks'], row),
  slope: ({ leaks }, row) => leaks.slope_bytes_per_s[row] ?? -1,
  last: ({ leaks }, row) => leaks.last_ms[row] ?? -1,
};

function sortedRows(answer: Leaks, sortBy: string): readonly number[] {
  const score = SORTS[sortBy] ?? SORTS['live_bytes'];
  const scores = range(answer.leaks.count).map((row) => score?.(answer, row) ?? 0);
  return range(answer.leaks.count).sort((a, b) => at(scores, b) - at(scores, a));
}

/** "+205 B/s", as the report has it. */
function slopeText(bytesPerS: number): string {
  const rate = formatByteRate(bytesPerS);
  return `${rate.startsWith('<') ? '' : '+'}${rate}/s`;
}

/** The class of a row's growth, and how sure it is. */
function growthColumn({ leaks }: Leaks): Column {
  const label = (row: number): string => GROWTH.find((entry) => entry.value === leaks.growth[row])?.label ?? leaks.growth[row] ?? '';
  return {
    key: 'growth',
    title: 'Growth',
    widthPx: 84,
    narrowPx: 74,
    cell: (row) => {
      const growth = GROWTH.find((entry) => entry.value === leaks.growth[row]);
      const isUnsure = leaks.growth_confidence[row] === 'low';
      const until = leaks.grew_until_ms[row] ?? null;
      const help = until === null ? growth?.help ?? '' : `it grew until ${formatMs(until)}, while there was work`;
      return (
        <span
          class={growth?.value === 'growing' ? 'leaks-growing' : ''}
          title={`${help}${isUnsure ? ' (unsure)' : ''}`}
        >
          {`${label(row)}${isUnsure ? '?' : ''}`}
        </span>
      );
    },
    saved: [
      { head: 'Growth', value: label },
      { head: 'Growth is sure', value: (row) => leaks.growth_confidence[row] ?? '' },
      { head: 'Grew until (ms)', value: (row) => leaks.grew_until_ms[row] ?? '' },
    ],
  };
}

function growthColumns(answer: Leaks): readonly Column[] {
  const { leaks } = answer;
  const when = (ms: number | null | undefined): string => (ms === null || ms === undefined ? '-' : formatMs(ms));
  return [
    growthColumn(answer),
    {
      key: 'slope',
      title: 'Slope',
      sortable: true,
      help: 'bytes each second, of what grows',
      widthPx: leaks.slope_error === null ? 106 : 150,
      narrowPx: leaks.slope_error === null ? 92 : 136,
      spare: 1,
      numeric: true,
      cell: (row) => {
        const slope = leaks.slope_bytes_per_s[row] ?? null;
        return <span class="leaks-number" title={slope === null ? '' : `over the last ${when(leaks.slope_ms[row])}`}>{slope === null ? '' : `${slopeText(slope)}${errorBeside(slope, leaks.slope_error?.[row])}`}</span>;
      },
      saved: [
        { head: 'Slope (bytes/s)', value: (row) => leaks.slope_bytes_per_s[row] ?? '' },
        ...(leaks.slope_error === null ? [] : [{ head: 'Slope ± (bytes/s)', value: (row: number) => leaks.slope_error?.[row] ?? '' }]),
      ],
    },
    {
      key: 'over',
      title: 'Over',
      help: 'for how long it grew like that, as long as there was work',
      widthPx: 92,
      spare: 3,
      numeric: true,
      cell: (row) => <span class="leaks-number">{(leaks.slope_ms[row] ?? null) === null ? '' : when(leaks.slope_ms[row])}</span>,
      saved: [{ head: 'Over (ms)', value: (row) => leaks.slope_ms[row] ?? '' }],
    },
    {
      key: 'last',
      title: 'Last',
      sortable: true,
      help: 'time of its last allocation',
      widthPx: 92,
      spare: 4,
      numeric: true,
      cell: (row) => <span class="leaks-number" title={`first ${when(leaks.first_ms[row])}`}>{when(leaks.last_ms[row])}</span>,
      saved: [
        { head: 'First (ms)', value: (row) => leaks.first_ms[row] ?? '' },
        { head: 'Last (ms)', value: (row) => leaks.last_ms[row] ?? '' },
      ],
    },
  ];
}

function columnsOf(answer: Leaks, hasGrowth: boolean, when: LiveWhen): readonly Column[] {
  const { leaks, code } = answer;
  return [
    {
      key: 'name',
      title: 'Call site',
      widthPx: 214,
      narrowPx: 150,
      grows: true,
      cell: (row) => <CodeText name={locationName(code, leaks.location[row])} />,
      saved: [{ head: 'Call site', value: (row) => nameText(locationName(code, leaks.location[row])) }],
    },
    ...COSTS.map((cost) => ({
      ...costColumn(cost, { title: costTitle(cost, when), isDiff: false, hasErrors: leaks.errors !== null }, (row) => ({
        value: at(leaks.costs[cost], row),
        total: answer.selection.totals[cost] ?? 0,
        error: errorAt(leaks.errors, cost, row),
      })),
      sortable: true,
      ...(cost === 'live_blocks' ? { spare: 2 } : {}),
    })),
    ...(answer.history === null || answer.history.length === 0 ? [] : [historyColumn(answer)]),
    ...(hasGrowth ? growthColumns(answer) : []),
  ];
}

/** How much of each row was live over the run. */
function historyColumn(answer: Leaks): Column {
  const parts = answer.history_parts ?? 1;
  const growth = (row: number): string => GROWTH.find((entry) => entry.value === answer.leaks.growth[row])?.label ?? '';
  return {
    key: 'history',
    title: 'History',
    help: 'its live bytes from the beginning to the end of the recording, each row in its own scale',
    widthPx: 120,
    narrowPx: 84,
    spare: 5,
    cell: (row) => {
      const values = (answer.history ?? []).slice(row * parts, (row + 1) * parts);
      return values.length === 0 ? '' : <Spark values={values} label={`Live bytes over the run. ${growth(row)}`} />;
    },
    saved: [],
  };
}

function Suppressions(props: { readonly answer: Leaks }): JSX.Element | null {
  const { suppressions, selection } = props.answer;
  const { suppressed } = selection;
  const rules = range(suppressions.count).filter((row) => at(suppressions.stack_count, row) > 0);
  if (rules.length === 0) {
    return null;
  }
  return (
    <details class="leaks-suppressions">
      <summary>{`Suppressed: ${formatBytes(suppressed.live_bytes)} in ${formatCountOf(suppressed.live_blocks, 'block')}, by ${formatCountOf(rules.length, 'rule')}. It is not counted here, but was live: the charts have it.`}</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Pattern</th>
            <th scope="col">Stacks</th>
            <th scope="col">Bytes</th>
            <th scope="col">Blocks</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((row) => (
            <tr key={row}>
              <td class="mono">{suppressions.pattern[row]}</td>
              <td>{formatCount(at(suppressions.stack_count, row))}</td>
              <td>{formatBytes(at(suppressions.live_bytes, row))}</td>
              <td>{formatCount(at(suppressions.live_blocks, row))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function LeakTable(props: { readonly answer: Leaks }): JSX.Element {
  const { answer } = props;
  const { leaks } = answer;
  const hasGrowth = useCapability('growth');
  const when = useLiveWhen();
  const [sortBy, setSortBy] = useState('live_bytes');
  const openMenu = useCodeMenu();
  const order = useMemo(() => sortedRows(answer, sortBy), [answer, sortBy]);
  const nameAt = (index: number): CodeName => locationName(answer.code, leaks.location[at(order, index)]);
  const { selected, isAbout, select } = useSubject(leaks.count, nameAt, order, 0);
  const place = Math.min(selected, leaks.count - 1);
  const row = place < 0 ? -1 : at(order, place);
  const frames = range(row < 0 ? 0 : at(leaks.frame_count, row)).map((offset) => {
    const index = at(leaks.frame_first, row) + offset;
    return { name: locationName(answer.code, answer.frames.location[index]), isInlined: answer.frames.inlined[index] === 1 };
  });
  return (
    <>
      <div class="split">
        <DataTable
          label="Leaks"
          columns={inOrder(columnsOf(answer, hasGrowth, when), order)}
          count={leaks.count}
          selected={place}
          sortBy={sortBy}
          onSort={setSortBy}
          isAbout={isAbout}
          onSelect={select}
          onMenu={(index, menuPlace) => openMenu(nameAt(index), menuPlace)}
          onActivate={(index) => openFunction(nameAt(index))}
          empty={when === 'now' ? 'Nothing is live now.' : when === 'stop' ? 'Nothing was live when the recording ended.' : 'Nothing was live at the end.'}
        />
        {frames.length > 0 ? (
          <section class="stack" aria-label="Stack of the selected leak">
            <h2>Stack</h2>
            <FrameList frames={frames} cost="live_bytes" />
          </section>
        ) : place >= 0 ? (
          <SiteStacks name={nameAt(place)} />
        ) : null}
      </div>
      <Suppressions answer={answer} />
    </>
  );
}

function GroupBy(props: { readonly address: Address }): JSX.Element {
  const hasBlocks = useCapability('blocks') && props.address.diff !== '1' && !inReport();
  return (
    <Choice
      label="Group by"
      value={props.address.leaks_by}
      options={[
        { value: 'call_site', label: 'by call site' },
        { value: 'stack', label: 'by stack' },
        ...(hasBlocks ? [{ value: 'block', label: 'single blocks' }] : []),
      ]}
      onChange={(leaks_by) => go({ leaks_by })}
    />
  );
}

export function LeaksView(): JSX.Element {
  const address = useAddress();
  const knows = useKnows();
  if (!knows('live_bytes')) {
    return <Notice>This file does not say what was live at the end.</Notice>;
  }
  return address.diff === '1' ? (
    <div class="view">
      <div class="toolbar">
        <GroupBy address={address} />
      </div>
      <LeaksDiff address={address} />
    </div>
  ) : address.leaks_by === 'block' ? (
    <div class="view">
      <div class="toolbar">
        <GroupBy address={address} />
        <BlocksAt address={address} />
      </div>
      <BlockList address={address} />
    </div>
  ) : (
    <LeaksAlone address={address} />
  );
}

function LeaksAlone(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const hasGrowth = useCapability('growth');
  const asked = useAsk('leaks', leaksParams(address), leaksAnswer);
  return (
    <div class="view">
      <div class="toolbar">
        <GroupBy address={address} />
        {hasGrowth ? <Choice label="Growth" value={address.growth} options={GROWTH} onChange={(growth) => go({ growth })} /> : null}
        <span class="soft" data-testid="leaks-count">
          {asked.value === null ? '' : formatCountOf(asked.value.total_count, address.leaks_by === 'call_site' ? 'call site' : 'stack')}
        </span>
      </div>
      {hasGrowth ? null : <Notice>This recording has no growth data.</Notice>}
      <Pane asked={asked} label="Leaks">
        {(answer) => <LeakTable answer={answer} />}
      </Pane>
    </div>
  );
}
