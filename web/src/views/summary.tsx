// The first page: the findings, the run over time, and the highest call sites; what describes the
// run and its recording comes last. Each item links to the view that explains it.
import type { JSX } from 'preact';
import { summary as summaryAnswer, type Summary } from '../api/answers';
import { formatBytes, formatCountOf, formatMs, formatPercent, formatRate } from '../base/format';
import { costMeaning, costTitle, errorBeside, formatCost, formatCostExact, type CostKey } from '../model/cost';
import { totalChange } from '../model/total-change';
import { isFiltered, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { summaryParams } from '../state/questions';
import { useLiveWhen } from './parts/live-when';
import { useComparedWith, useMeta } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { useTells } from './parts/unknown-costs';
import { Events } from './events';
import { FindingCards } from './findings';
import { RssBar } from './rss-bar';
import { EmptyNotice, Facts, Health, Unseen } from './run-facts';
import { TimeLine } from './time-line';
import { ChangedList, TopList } from './top-lists';
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
    cost: 'live_bytes',
    label: 'Leaked',
    go: { view: 'leaks' },
    note: (t, suppressed) =>
      `in ${formatCountOf(t['live_blocks'] ?? 0, 'unfreed block')}${(t['processes'] ?? 0) > 1 && (t['live_bytes'] ?? 0) > (t['peak_bytes'] ?? 0) ? ', left by processes one after the other' : ''}${suppressed === 0 ? '' : `; ${formatBytes(suppressed)} more is suppressed`}`,
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
    note: (t) => (t['allocations'] === 0 ? 'no allocations' : `${formatPercent(t['temporary'] ?? 0, t['allocations'] ?? 0)} of all allocations`),
  },
  {
    cost: 'allocated_bytes',
    label: 'Allocated',
    go: { view: 'bottom-up', cost: 'allocated_bytes' },
    note: (t) => `${formatCountOf(t['frees'] ?? 0, 'block')} freed`,
  },
  {
    cost: 'peak_rss_bytes',
    label: 'Peak RSS',
    go: { view: 'rss' },
    note: (t, _suppressed, isFiltered) => `all processes together${atMost(t)}${isFiltered ? '; whole recording, not filtered' : ''}`,
  },
];

/** What the peak may have been, if that is a hundredth more. */
function atMost(totals: Readonly<Record<string, number>>): string {
  const most = totals['peak_rss_at_most_bytes'] ?? 0;
  return most > 1.01 * (totals['peak_rss_bytes'] ?? 0) ? `, at most ${formatBytes(most)}` : '';
}

function perSecond(count: number, countedMs: number): string {
  return countedMs === 0 ? 'too short for a rate' : `${formatRate((count * 1000) / countedMs)} a second`;
}

function Figures(props: { readonly summary: Summary }): JSX.Element {
  const { totals, baseline_totals: old, selection } = props.summary;
  const tells = useTells();
  const other = useComparedWith();
  const when = useLiveWhen();
  const isFilteredNow = isFiltered(useAddress());
  return (
    <ul class="figures">
      {TILES.map((tile) => {
        const value = totals[tile.cost] ?? 0;
        return (
          <li key={tile.cost}>
            <button type="button" class="figure" onClick={() => go(tile.go)} title={`${costMeaning(tile.cost, when)}: ${tells(tile.cost) ? formatCostExact(tile.cost, value) : 'unknown'}`}>
              <span class="figure-label">{tile.cost === 'live_bytes' ? costTitle(tile.cost, when) : tile.label}</span>
              <span class="figure-value" data-testid={`figure-${tile.cost}`}>
                {!tells(tile.cost) ? 'unknown' : tile.cost === 'peak_rss_bytes' && value === 0 ? 'not sampled' : formatCost(tile.cost, value)}
                {tells(tile.cost) ? <span class="figure-error">{errorBeside(value, selection.totals_errors?.[tile.cost])}</span> : null}
              </span>
              <span class="figure-note">
                {!tells(tile.cost) ? 'unknown in this file or under this filter' : old === null ? tile.note(totals, props.summary.selection.suppressed.live_bytes, isFilteredNow) : `${totalChange(props.summary, tile.cost, isFilteredNow)} vs ${other}`}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

export function SummaryView(): JSX.Element {
  const address = useAddress();
  const meta = useMeta();
  const tells = useTells();
  const asked = useAsk('summary', summaryParams(address), summaryAnswer);
  return (
    <div class="summary">
      {meta.damage === null ? null : <Notice bad>{`Incomplete file: ${meta.damage}.`}</Notice>}
      <Pane asked={asked} label="Summary">
        {(summary) => (
          <>
            <EmptyNotice summary={summary} />
            <FindingCards summary={summary} />
            <Figures summary={summary} />
            <TimeLine isTall />
            <div class="tops">
              {['peak_bytes', 'live_bytes', 'allocations', 'temporary', 'allocated_bytes'].filter(tells).map((cost) => (
                address.diff === '1' ? <ChangedList key={cost} cost={cost} /> : <TopList key={cost} summary={summary} cost={cost} />
              ))}
              <Events />
            </div>
            <RssBar />
            <Health summary={summary} />
            <Unseen summary={summary} />
            <Facts />
          </>
        )}
      </Pane>
    </div>
  );
}
