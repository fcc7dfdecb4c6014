// The highest call sites of a cost, and in a comparison those that changed most.
import type { JSX } from 'preact';
import { callSites, type Summary } from '../api/answers';
import { at, range } from '../base/columns';
import { formatPercent, formatPercentError } from '../base/format';
import { locationName } from '../model/code';
import { costTitle, formatCost, formatCostChange, formatCostExact, type CostKey } from '../model/cost';
import { filterParams } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { CodeLink } from './parts/code-label';
import { useLiveWhen } from './parts/live-when';
import { Pane } from './parts/pane';
import './summary.css';

const CHANGED = 5;

const TOP_TITLES: Readonly<Record<string, string>> = {
  peak_bytes: 'Most at the peak',
  live_bytes: 'Most leaked',
  allocations: 'Most allocations',
  temporary: 'Most temporary allocations',
  allocated_bytes: 'Most bytes allocated',
};

/** Of a program that runs, and of a moment. */
const LIVE_TITLES: Readonly<Record<string, string>> = { live_bytes: 'Most live' };

function Title(props: { readonly cost: CostKey; readonly text: string }): JSX.Element {
  const { cost, text } = props;
  return (
    <h2>
      <button type="button" class="link" onClick={() => go({ view: cost === 'live_bytes' ? 'leaks' : 'bottom-up', cost })}>
        {text}
      </button>
    </h2>
  );
}

export function TopList(props: { readonly summary: Summary; readonly cost: CostKey }): JSX.Element {
  const { summary, cost } = props;
  const when = useLiveWhen();
  const top = summary.top[cost];
  const values = top?.costs[cost];
  const total = summary.selection.totals[cost] ?? 0;
  return (
    <section class="top" data-testid={`top-${cost}`}>
      <Title cost={cost} text={(when === 'end' ? undefined : LIVE_TITLES[cost]) ?? TOP_TITLES[cost] ?? costTitle(cost)} />
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
              {top.errors === null ? null : (
                <span class="top-error" title={`± ${formatCostExact(cost, at(top.errors[cost], row))} in 95 of 100 cases`}>
                  {formatPercentError(at(values, row), at(top.errors[cost], row))}
                </span>
              )}
              <span class="top-share">{formatPercent(at(values, row), total)}</span>
              <CodeLink name={locationName(summary.code, top.location[row])} inlined={top.inlined[row] === 1} cost={cost} />
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** By function, because lines differ between builds. */
export function ChangedList(props: { readonly cost: CostKey }): JSX.Element {
  const { cost } = props;
  const address = useAddress();
  const title = costTitle(cost, useLiveWhen());
  const asked = useAsk(
    'call_sites',
    { ...filterParams(address), costs: cost, sort: cost, diff: '1', sort_by: 'change', limit: String(CHANGED) },
    callSites,
  );
  return (
    <section class="top" data-testid={`top-${cost}`}>
      <Title cost={cost} text={`${title}: changed most`} />
      <Pane asked={asked} label={title}>
        {({ sites, code }) => {
          const change = (row: number): number => at(sites.costs[cost], row) - at(sites.old_costs?.[cost], row);
          const rows = range(sites.count).filter((row) => change(row) !== 0);
          return rows.length === 0 ? (
            <p class="soft">Nothing changed.</p>
          ) : (
            <ol>
              {rows.map((row) => (
                <li key={row} title={`before: ${formatCostExact(cost, at(sites.old_costs?.[cost], row))}\nnow: ${formatCostExact(cost, at(sites.costs[cost], row))}`}>
                  <span class={change(row) > 0 ? 'top-cost cost-more' : 'top-cost cost-less'}>{formatCostChange(cost, change(row))}</span>
                  <CodeLink name={{ ...locationName(code, sites.location[row]), file: '' }} />
                </li>
              ))}
            </ol>
          );
        }}
      </Pane>
    </section>
  );
}
