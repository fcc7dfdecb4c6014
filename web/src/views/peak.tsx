// Why the heap reached its peak: what each call site gained since the trough before it.
import type { JSX } from 'preact';
import { summary as summaryAnswer, type Findings, type Summary } from '../api/answers';
import { at } from '../base/columns';
import { formatBytes, formatCount, formatMs } from '../base/format';
import { locationName, type CodeName } from '../model/code';
import { errorBeside } from '../model/cost';
import { go } from '../state/app-state';
import { useAsk } from '../state/hooks';
import { useCodeMenu } from './code-menu';
import { CodeLink, nameText, openFunction } from './parts/code-label';
import { costColumn } from './parts/cost-cell';
import { DataTable, textColumn, type Column } from './parts/data-table';
import { useComparison } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { Sentence } from './parts/sentence';
import { useSubject } from './parts/subject';
import './peak.css';

type Rise = NonNullable<Findings['peak_rise']>;

/** From where to where the heap rose. */
function riseText({ totals }: Summary, rise: Rise, what = 'The heap'): string {
  const from = rise.trough_bytes === 0 ? 'from nothing' : `from ${formatBytes(rise.trough_bytes)}${errorBeside(rise.trough_bytes, rise.trough_bytes_error)} at ${formatMs(rise.trough_ms)}, the trough before it,`;
  const mark = rise.mark === null ? '' : ` The last mark before the peak was “${rise.mark}”.`;
  return `${what} rose ${from} to ${formatBytes(rise.peak_bytes)}${errorBeside(rise.peak_bytes, rise.peak_bytes_error)} at ${formatMs(totals['peak_time_ms'] ?? 0)}. In between, ${formatBytes(rise.freed_bytes)}${errorBeside(rise.freed_bytes, rise.freed_bytes_error)} were freed.${mark}`;
}

function columnsOf(rise: Rise, name: (row: number) => CodeName): readonly Column[] {
  const { sites } = rise;
  const hasErrors = sites.gained_bytes_error !== null;
  const gained = costColumn('peak_bytes', { title: 'Gained', isDiff: false, hasErrors }, (row) => ({
    value: at(sites.gained_bytes, row),
    total: rise.peak_bytes,
    error: sites.gained_bytes_error?.[row],
  }));
  const without = (row: number): number => at(sites.without_bytes, row);
  return [
    {
      ...gained,
      key: 'gained',
      help: 'live bytes at the peak less those at the trough; the share is that of the peak',
      widthPx: hasErrors ? 194 : 150,
      narrowPx: hasErrors ? 136 : 92,
    },
    {
      key: 'without',
      title: 'Peak without it',
      help: 'the peak without what this call site gained',
      widthPx: sites.without_bytes_error === null ? 120 : 164,
      spare: 2,
      numeric: true,
      cell: (row) => <span class="peak-number">{`${formatBytes(without(row))}${errorBeside(without(row), sites.without_bytes_error?.[row])}`}</span>,
      saved: [
        { head: 'Peak without it (bytes)', value: without },
        ...(sites.without_bytes_error === null ? [] : [{ head: 'Peak without it ± (bytes)', value: (row: number) => at(sites.without_bytes_error ?? [], row) }]),
      ],
    },
    {
      key: 'name',
      title: 'Call site',
      widthPx: 200,
      narrowPx: 170,
      grows: true,
      cell: (row) => <CodeLink name={name(row)} cost="peak_bytes" />,
      saved: [{ head: 'Call site', value: (row) => nameText(name(row)) }],
    },
    textColumn({ key: 'thread', title: 'Thread', help: 'the thread that gained most of it', widthPx: 130, spare: 3 }, (row) => sites.thread_name[row] ?? ''),
  ];
}

function Sites(props: { readonly summary: Summary; readonly rise: Rise }): JSX.Element {
  const { summary, rise } = props;
  const openMenu = useCodeMenu();
  const name = (row: number): CodeName => locationName(summary.code, rise.sites.location[row]);
  const { selected, isAbout, select } = useSubject(rise.sites.count, name, rise);
  return (
    <>
      <p class="peak-text" data-testid="peak-text">
        <Sentence text={riseText(summary, rise)} />{' '}
        <button type="button" class="link" onClick={() => go({ view: 'flame', cost: 'peak_bytes', search: '' })}>
          Flame graph of the peak
        </button>
      </p>
      <DataTable
        label="Gained before the peak"
        columns={columnsOf(rise, name)}
        count={rise.sites.count}
        selected={selected}
        isAbout={isAbout}
        onSelect={select}
        onMenu={(row, place) => openMenu(name(row), place)}
        onActivate={(row) => openFunction(name(row))}
        empty="No call site gained memory."
      />
      {rise.total_count > rise.sites.count ? <p class="soft">{`Top ${formatCount(rise.sites.count)} of ${formatCount(rise.total_count)} call sites.`}</p> : null}
    </>
  );
}

/** The rise of the recording compared with. */
function RiseBefore(): JSX.Element | null {
  const isDiff = useComparison();
  const asked = useAsk(isDiff ? 'summary' : null, { recording: 'old' }, summaryAnswer);
  const summary = asked.value;
  const rise = summary?.findings.peak_rise ?? null;
  return !isDiff || summary === null || rise === null ? null : (
    <p class="peak-text soft" data-testid="peak-before">
      {riseText(summary, rise, 'Before, the heap')}
    </p>
  );
}

export function PeakView(): JSX.Element {
  const asked = useAsk('summary', {}, summaryAnswer);
  return (
    <div class="view peak">
      <RiseBefore />
      <Pane asked={asked} label="Peak">
        {(summary) =>
          summary.findings.peak_rise === null ? (
            <Notice>This recording has no time slices, so the rise to its peak is unknown.</Notice>
          ) : (
            <Sites summary={summary} rise={summary.findings.peak_rise} />
          )
        }
      </Pane>
    </div>
  );
}
