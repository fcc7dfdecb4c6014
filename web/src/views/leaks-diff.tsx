// What is alive at the end of two recordings: call sites, merged by function because lines move from build to build.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { callSites, type CallSites } from '../api/answers';
import { at } from '../base/columns';
import { formatCount } from '../base/format';
import { locationName } from '../model/code';
import { costHeading, costMeaning, costWidthPx } from '../model/cost';
import { filterParams, type Address } from '../state/address';
import { useAsk } from '../state/hooks';
import { CodeText, openFunction } from './parts/code-label';
import { CostCell } from './parts/cost-cell';
import { DataTable } from './parts/data-table';
import { Pane } from './parts/pane';

const COSTS = ['leaked_bytes', 'leaked_allocations', 'allocations'] as const;
const LIMIT = '1000';

function Table(props: { readonly answer: CallSites }): JSX.Element {
  const { sites, code, selection } = props.answer;
  const [selected, setSelected] = useState(0);
  return (
    <DataTable
      label="Leaks"
      columns={[
        { key: 'name', title: 'Function that asked', widthPx: 260, grows: true, cell: (row) => <CodeText name={{ ...locationName(code, sites.location[row]), file: '' }} /> },
        ...COSTS.map((cost) => ({
          key: cost,
          title: costHeading(cost, true),
          help: costMeaning(cost),
          widthPx: costWidthPx(cost, true) + 20,
          numeric: true,
          cell: (row: number) => <CostCell cost={cost} value={at(sites.costs[cost], row)} old={at(sites.old_costs?.[cost], row)} total={selection.totals[cost] ?? 0} />,
        })),
      ]}
      count={sites.count}
      selected={Math.min(selected, sites.count - 1)}
      onSelect={setSelected}
      onActivate={(row) => openFunction(locationName(code, sites.location[row]))}
      empty="Nothing was alive at the end of either."
    />
  );
}

export function LeaksDiff(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const asked = useAsk(
    'call_sites',
    { ...filterParams(address, false), costs: COSTS.join(','), sort: 'leaked_bytes', sort_by: address.sort_by, limit: LIMIT, diff: '1' },
    callSites,
  );
  return (
    <div class="view">
      <p class="soft" data-testid="leaks-count">
        {asked.value === null ? '' : `${formatCount(asked.value.total_count)} in all. Call sites of both recordings, merged by function; growth and stacks are shown without a comparison.`}
      </p>
      <Pane asked={asked} label="Leaks">
        {(answer) => <Table answer={answer} />}
      </Pane>
    </div>
  );
}
