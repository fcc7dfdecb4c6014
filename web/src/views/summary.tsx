// The run and its costs at a glance; each item links to the view that explains it.
import type { JSX } from 'preact';
import { health as healthAnswer, summary as summaryAnswer, type Summary } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatCount, formatCountOf, formatMs, formatPercent } from '../base/format';
import { shownText } from '../base/shown-text';
import { costMeaning, costTitle, formatCost, formatCostChange, formatCostExact, type CostKey } from '../model/cost';
import { locationName } from '../model/code';
import { filterParams, isFiltered, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { CodeLink } from './parts/code-label';
import { useMeta } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { useTells } from './parts/unknown-costs';
import { Events } from './events';
import { MiniTimeline } from './mini-timeline';
import { RssBar } from './rss-bar';
import './summary.css';

interface Tile {
  readonly cost: CostKey;
  readonly label: string;
  readonly go: Partial<Address>;
  /** `suppressed`: bytes that suppressions removed from the leaked bytes. */
  readonly note: (totals: Readonly<Record<string, number>>, suppressed: number, isFiltered: boolean) => string;
}

const TILES: readonly Tile[] = [
  {
    cost: 'peak_bytes',
    label: 'Peak heap',
    go: { view: 'flame', cost: 'peak_bytes' },
    note: (t) => `after ${formatMs(t['peak_time_ms'] ?? 0)}, in ${formatCountOf(t['peak_blocks'] ?? 0, 'block')}`,
  },
  {
    cost: 'leaked_bytes',
    label: 'Live at the end',
    go: { view: 'leaks' },
    note: (t, suppressed) => `in ${formatCountOf(t['leaked_allocations'] ?? 0, 'block that was not freed', 'blocks that were not freed')}${suppressed === 0 ? '' : `; ${formatBytes(suppressed)} more is suppressed`}`,
  },
  {
    cost: 'allocations',
    label: 'Allocations',
    go: { view: 'bottom-up', cost: 'allocations' },
    note: (t) => perSecond(t['allocations'] ?? 0, t['counted_ms'] ?? 0),
  },
  {
    cost: 'temporary',
    label: 'Temporary',
    go: { view: 'bottom-up', cost: 'temporary' },
    note: (t) => (t['allocations'] === 0 ? 'there were no allocations' : `${formatPercent(t['temporary'] ?? 0, t['allocations'] ?? 0)} of all allocations`),
  },
  {
    cost: 'allocated_bytes',
    label: 'Allocated in all',
    go: { view: 'bottom-up', cost: 'allocated_bytes' },
    note: (t) => `${formatCountOf(t['frees'] ?? 0, 'block')} freed`,
  },
  {
    cost: 'peak_rss_bytes',
    label: 'Peak RSS',
    go: { view: 'rss' },
    note: (_t, _suppressed, isFiltered) => `resident, all processes together${isFiltered ? '; of the whole recording, not filtered' : ''}`,
  },
];

const TOP_TITLES: Readonly<Record<string, string>> = {
  peak_bytes: 'Largest at the peak',
  leaked_bytes: 'Largest live at the end',
  allocations: 'Most allocations',
  temporary: 'Most temporary allocations',
  allocated_bytes: 'Most bytes allocated',
};

function perSecond(count: number, countedMs: number): string {
  return countedMs === 0 ? 'it was too short for a rate' : `${formatCount((count * 1000) / countedMs)} each second`;
}

function Figures(props: { readonly summary: Summary }): JSX.Element {
  const { totals, baseline_totals: old } = props.summary;
  const tells = useTells();
  const isFilteredNow = isFiltered(useAddress());
  return (
    <ul class="figures">
      {TILES.map((tile) => {
        const value = totals[tile.cost] ?? 0;
        return (
          <li key={tile.cost}>
            <button type="button" class="figure" onClick={() => go(tile.go)} title={`${costMeaning(tile.cost)}: ${tells(tile.cost) ? formatCostExact(tile.cost, value) : 'unknown'}`}>
              <span class="figure-label">{tile.label}</span>
              <span class="figure-value" data-testid={`figure-${tile.cost}`}>
                {!tells(tile.cost) ? 'unknown' : tile.cost === 'peak_rss_bytes' && value === 0 ? 'not sampled' : formatCost(tile.cost, value)}
              </span>
              <span class="figure-note">
                {!tells(tile.cost) ? 'this file and filter do not tell' : old === null ? tile.note(totals, props.summary.selection.suppressed.leaked_bytes, isFilteredNow) : `${formatCostChange(tile.cost, value - (old[tile.cost] ?? 0))} against before`}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function TopList(props: { readonly summary: Summary; readonly cost: CostKey }): JSX.Element {
  const { summary, cost } = props;
  const top = summary.top[cost];
  const values = top?.costs[cost];
  const total = summary.selection.totals[cost] ?? 0;
  const view = cost === 'leaked_bytes' ? 'leaks' : 'bottom-up';
  return (
    <section class="top" data-testid={`top-${cost}`}>
      <h2>
        <button type="button" class="link" onClick={() => go({ view, cost })}>
          {TOP_TITLES[cost] ?? costTitle(cost)}
        </button>
      </h2>
      {top === undefined || top.count === 0 ? (
        <p class="soft">Nothing.</p>
      ) : (
        <ol>
          {range(top.count).map((row) => (
            <li key={row}>
              <span class="top-bar" style={{ width: `${(Math.min(at(values, row) / Math.max(total, 1), 1) * 100).toFixed(2)}%` }} />
              <span class="top-cost" title={formatCostExact(cost, at(values, row))}>
                {formatCost(cost, at(values, row))}
              </span>
              <span class="top-share">{formatPercent(at(values, row), total)}</span>
              <CodeLink name={locationName(summary.code, top.location[row])} inlined={top.inlined[row] === 1} />
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** The reason for a recording without a single allocation, which is rare. */
function EmptyNotice(props: { readonly summary: Summary }): JSX.Element | null {
  const meta = useMeta();
  const { recording_totals: whole } = props.summary.selection;
  if ((whole['allocations'] ?? 0) > 0 || (whole['peak_bytes'] ?? 0) > 0) {
    return null;
  }
  return (
    <Notice>
      {meta.state === 'running'
        ? 'The program has not asked for memory yet. This page shows what it does as soon as it does.'
        : 'The program asked for no memory while it was recorded. If it should have: it may be linked statically, have an allocator of its own, or have started another program that was not followed.'}
    </Notice>
  );
}

function Facts(): JSX.Element {
  const meta = useMeta();
  const { run } = meta;
  const facts: readonly (readonly [string, string])[] = [
    ['Command', run.command_line === '' ? run.program : run.command_line],
    ['Started', run.start_unix_ms === 0 ? 'unknown' : new Date(run.start_unix_ms).toLocaleString()],
    ['Ran for', formatMs(meta.runtime_ms)],
    ['Ended', endText(meta.state, run.wait_status)],
    ['Host', `${run.host}, ${run.cpu_count} CPUs, ${formatBytes(run.memory_bytes)}`],
    ['System', `${run.kernel}, libc ${run.libc}`],
    ['Processes', `${formatCount(meta.processes)} with ${formatCountOf(meta.threads, 'thread')}`],
    ['Recording', `${meta.file.name}, ${formatBytes(meta.file.bytes)}, by cairn ${run.recorded_by}`],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={name === 'Command' ? 'mono' : ''}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function endText(state: string, status: number | null): string {
  if (state === 'running') {
    return 'still running: this page follows it';
  }
  if (state === 'stopped') {
    return 'recording ended while the program went on';
  }
  if (status === null) {
    return 'unknown how';
  }
  const signal = status & 0x7f;
  return signal === 0 ? `exit status ${(status >> 8) & 0xff}` : `killed by signal ${signal}`;
}

function Health(props: { readonly summary: Summary }): JSX.Element {
  const { health } = props.summary;
  const asked = useAsk('health', {}, healthAnswer);
  const advice = asked.value?.modules;
  const rows = advice === undefined ? [] : range(advice.count).filter((row) => advice.symbol_advice[row] !== '');
  const counters = asked.value?.counters;
  const notes = counters === undefined ? [] : range(counters.count).filter((row) => at(counters.value, row) > 0);
  return (
    <section class="health">
      <h2>Can these numbers be believed?</h2>
      <p>
        {health.lost_events === 0
          ? 'No event was lost.'
          : `${formatCountOf(health.lost_events, 'event was', 'events were')} lost: the numbers are too low.`}
        {health.frames === 0 ? '' : ` ${formatPercent(health.frames_with_function, health.frames)} of the frames have a function name, ${formatPercent(health.frames_with_line, health.frames)} a source line.`}
      </p>
      <ul>
        {notes.map((row) => (
          <li key={row}>{`${counters?.text[row] ?? ''}: ${formatCount(at(counters?.value, row))}`}</li>
        ))}
        {rows.map((row) => (
          <li key={`m${row}`}>
            <span class="mono">{advice?.name[row]}</span>
            {`: ${advice?.symbol_advice[row] ?? ''}`}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The limits of the recording, a sentence each. */
function Unseen(props: { readonly summary: Summary }): JSX.Element | null {
  const { unrecorded, unseen } = props.summary;
  const { programs } = unrecorded;
  const named = range(programs.count).map((row) => `${shownText(programs.program[row] || 'other programs')} (${shownText(programs.text[row] ?? '')})`);
  const blind = range(unseen.count).map((row) => `${shownText(unseen.executable[row] ?? '')}, pid ${at(unseen.pid, row)}`);
  return unrecorded.execs === 0 && unseen.count === 0 ? null : (
    <>
      {unrecorded.execs === 0 ? null : (
        <Notice>
          <span data-testid="unrecorded">{`${formatCountOf(unrecorded.execs, 'executed program is', 'executed programs are')} not recorded: ${some(named)}.`}</span>
        </Notice>
      )}
      {unseen.count === 0 ? null : (
        <Notice>
          <span data-testid="unseen">{`The heap of ${formatCountOf(unseen.count, 'process was', 'processes was')} not seen, or only in part: ${some(blind)}.`}</span>
        </Notice>
      )}
    </>
  );
}

/** The first few of a list, in one line. */
function some(items: readonly string[]): string {
  const most = 3;
  return items.length > most ? `${items.slice(0, most).join('; ')}; and ${formatCount(items.length - most)} more` : items.join('; ');
}

export function SummaryView(): JSX.Element {
  const address = useAddress();
  const meta = useMeta();
  const tells = useTells();
  const asked = useAsk('summary', { ...filterParams(address), diff: address.diff }, summaryAnswer);
  return (
    <div class="summary">
      {meta.damage === null ? null : <Notice bad>{`This recording is not whole: ${meta.damage}.`}</Notice>}
      <Pane asked={asked} label="Summary">
        {(summary) => (
          <>
            <EmptyNotice summary={summary} />
            <Unseen summary={summary} />
            <Figures summary={summary} />
            <MiniTimeline />
            <RssBar />
            <div class="tops">
              {['peak_bytes', 'leaked_bytes', 'allocations', 'temporary', 'allocated_bytes'].filter(tells).map((cost) => (
                <TopList key={cost} summary={summary} cost={cost} />
              ))}
              <Events />
              <Health summary={summary} />
            </div>
            <Facts />
          </>
        )}
      </Pane>
    </div>
  );
}
