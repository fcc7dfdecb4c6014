// Live blocks at the end of two recordings: stacks or call sites, matched by function because lines
// change between builds.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { callSites, stackPairs, type CallSites, type StackPairs } from '../api/answers';
import { at, range } from '../base/columns';
import { formatCount } from '../base/format';
import { functionName, locationName, type CodeName } from '../model/code';
import { costMeaning, costTitle, type LiveWhen } from '../model/cost';
import { comparesRanges, filterParams, wholeRunParams, type Address } from '../state/address';
import { useAsk } from '../state/hooks';
import { FrameList } from './frame-list';
import { CodeText, nameText, openFunction } from './parts/code-label';
import { costColumn, errorAt } from './parts/cost-cell';
import { DataTable, type Column } from './parts/data-table';
import { useLiveWhen } from './parts/live-when';
import { Pane } from './parts/pane';

const COSTS = ['live_bytes', 'live_blocks'] as const;
const LIMIT = '1000';
const EMPTY = 'Nothing was live at the end of either.';

type Columns = Readonly<Record<string, readonly number[]>>;

interface Compared {
  readonly costs: Columns;
  readonly old_costs: Columns | null;
  readonly errors: Columns | null;
  readonly old_errors: Columns | null;
}

function columnsOf(title: string, name: (row: number) => CodeName, table: Compared, totals: Readonly<Record<string, number>>, when: LiveWhen): readonly Column[] {
  const { costs: now, old_costs: old, errors, old_errors: oldErrors } = table;
  return [
    { key: 'name', title, widthPx: 260, narrowPx: 150, grows: true, cell: (row) => <CodeText name={name(row)} />, saved: [{ head: title, value: (row) => nameText(name(row)) }] },
    ...COSTS.map((cost) => ({
      ...costColumn(cost, { title: costTitle(cost, when), isDiff: true, hasErrors: (errors ?? oldErrors) !== null }, (row) => ({
        value: at(now[cost], row),
        old: at(old?.[cost], row),
        total: totals[cost] ?? 0,
        error: errorAt(errors, cost, row),
        oldError: errorAt(oldErrors, cost, row),
      })),
      help: costMeaning(cost, when),
      ...(cost === 'live_blocks' ? { spare: 1 } : {}),
    })),
  ];
}

function SiteTable(props: { readonly answer: CallSites }): JSX.Element {
  const { sites, code, selection } = props.answer;
  const [selected, setSelected] = useState(0);
  const name = (row: number): CodeName => ({ ...locationName(code, sites.location[row]), file: '' });
  return (
    <DataTable
      label="Leaks"
      columns={columnsOf('Function that asked', name, sites, selection.totals, useLiveWhen())}
      count={sites.count}
      selected={Math.min(selected, sites.count - 1)}
      onSelect={setSelected}
      onActivate={(row) => openFunction(name(row))}
      empty={EMPTY}
    />
  );
}

function StackTable(props: { readonly answer: StackPairs }): JSX.Element {
  const { stacks, frames, code, selection } = props.answer;
  const [selected, setSelected] = useState(0);
  const row = Math.min(selected, stacks.count - 1);
  const frame = (index: number): CodeName => functionName(code, frames.function[index]);
  const name = (of: number): CodeName => frame(at(stacks.frame_first, of) + at(stacks.site_frame, of));
  const shown = range(row < 0 ? 0 : at(stacks.frame_count, row)).map((offset) => {
    const index = at(stacks.frame_first, row) + offset;
    return { name: frame(index), isInlined: frames.inlined[index] === 1 };
  });
  return (
    <div class="split">
      <DataTable
        label="Leaks"
        columns={columnsOf('Stack, by the function that asked', name, stacks, selection.totals, useLiveWhen())}
        count={stacks.count}
        selected={row}
        onSelect={setSelected}
        onActivate={(of) => openFunction(name(of))}
        empty={EMPTY}
      />
      {shown.length === 0 ? null : (
        <section class="stack" aria-label="Stack of the selected leak">
          <h2>Stack</h2>
          <FrameList frames={shown} cost="live_bytes" />
        </section>
      )}
    </div>
  );
}

export function LeaksDiff(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const isByStack = address.leaks_by !== 'call_site';
  const params = { ...(comparesRanges(address) ? filterParams(address) : wholeRunParams(address)), costs: COSTS.join(','), sort: 'live_bytes', sort_by: address.sort_by, limit: LIMIT, diff: '1' };
  const pairs = useAsk(isByStack ? 'stacks' : null, params, stackPairs);
  const sites = useAsk(isByStack ? null : 'call_sites', params, callSites);
  const count = (isByStack ? pairs.value : sites.value)?.total_count ?? null;
  return (
    <>
      <p class="soft" data-testid="leaks-count">
        {count === null ? '' : `${formatCount(count)} in all. ${isByStack ? 'Stacks' : 'Call sites'} of both recordings, matched by function; how they grew is shown without a comparison.`}
      </p>
      {isByStack ? (
        <Pane asked={pairs} label="Leaks">
          {(answer) => <StackTable answer={answer} />}
        </Pane>
      ) : (
        <Pane asked={sites} label="Leaks">
          {(answer) => <SiteTable answer={answer} />}
        </Pane>
      )}
    </>
  );
}
