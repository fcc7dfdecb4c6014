// Caller/callee: every function with its self and inclusive cost; for the selected one its callers,
// its callees and its source lines.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { functionDetail, functions as functionsAnswer, type FunctionDetail, type Functions } from '../api/answers';
import { at, range } from '../base/columns';
import { formatCount, formatCountOf } from '../base/format';
import { fileLine, functionName, locationName, NO_CODE, type CodeName } from '../model/code';
import { columnCosts, costMeaning, costTitle, TABLE_COSTS, type CostKey, type LiveWhen } from '../model/cost';
import type { CostColumns } from '../model/tree';
import { filterParams, hideWrappers, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { functionsParams } from '../state/questions';
import { useCodeMenu } from './code-menu';
import { CodeText, nameText, openFunction, PlaceLinks } from './parts/code-label';
import { Choice, WrapperToggle } from './parts/controls';
import { costColumn, errorAt, type CostFigures } from './parts/cost-cell';
import { DataTable, type Column } from './parts/data-table';
import { useLiveWhen } from './parts/live-when';
import { Pane } from './parts/pane';
import './functions.css';

type Totals = Readonly<Record<string, number>>;

/** Costs with their errors, both null where there are none. */
interface Costed {
  readonly costs: CostColumns;
  readonly old: CostColumns | null;
  readonly errors: CostColumns | null;
  readonly oldErrors: CostColumns | null;
}

function costColumns(values: Costed, totals: Totals, costs: readonly CostKey[], when: LiveWhen): readonly Column[] {
  const { old } = values;
  const hasErrors = (values.errors ?? values.oldErrors) !== null;
  return costs.map((cost, index) => ({
    spare: index + 1,
    ...costColumn(cost, { title: costTitle(cost, when), isDiff: old !== null, hasErrors }, (row) => ({
      value: at(values.costs[cost], row),
      total: totals[cost] ?? 0,
      old: old === null ? undefined : at(old[cost], row),
      error: errorAt(values.errors, cost, row),
      oldError: errorAt(values.oldErrors, cost, row),
    })),
    help: `${costMeaning(cost, when)}: sort by this`,
    sortable: true,
  }));
}

function nameColumn(title: string, widthPx: number, name: (row: number) => CodeName): Column {
  return { key: 'name', title, widthPx, grows: true, cell: (row) => <CodeText name={name(row)} />, saved: [{ head: title, value: (row) => nameText(name(row)) }] };
}

/** The costs of source lines, of themselves or with what they call. */
function lineColumns(key: string, title: string, costs: CostColumns, errors: CostColumns | null, totals: Totals, cost: CostKey): readonly Column[] {
  const figures = (row: number): CostFigures => ({ value: at(costs[cost], row), total: totals[cost] ?? 0, error: errorAt(errors, cost, row) });
  return [{ ...costColumn(cost, { title, isDiff: false, hasErrors: errors !== null }, figures), key }];
}

function AllFunctions(props: { readonly answer: Functions; readonly address: Address }): JSX.Element {
  const { answer, address } = props;
  const { functions, code } = answer;
  const when = useLiveWhen();
  const openMenu = useCodeMenu();
  const isSelf = address.by_self === '1';
  const rows = useMemo(() => range(functions.count), [answer]);
  const named = useMemo(() => rows.map((row) => functionName(code, functions.function[row])), [rows]);
  const name = (place: number): CodeName => named[place] ?? NO_CODE;
  const selected = rows.findIndex((_, place) => name(place).key === address.fn && name(place).modulePath === address.fn_module);
  const shown: Costed = isSelf
    ? { costs: functions.self, old: functions.old_self, errors: functions.self_errors, oldErrors: functions.old_self_errors }
    : { costs: functions.inclusive, old: functions.old_inclusive, errors: functions.inclusive_errors, oldErrors: functions.old_inclusive_errors };
  return (
    <>
      <p class="soft functions-count">
        {functions.count < answer.total_count
          ? `Top ${formatCount(functions.count)} of ${formatCount(answer.total_count)} functions; filter to see others`
          : formatCountOf(answer.total_count, 'function')}
      </p>
      <DataTable
        label="Functions"
        columns={[
          { ...nameColumn('Function', 220, name), narrowPx: 140 },
          ...costColumns(shown, answer.selection.totals, shown.old === null ? TABLE_COSTS : columnCosts(address.cost, true), when),
        ]}
        count={rows.length}
        selected={selected}
        sortBy={address.cost}
        onSort={(key) => go({ cost: key })}
        onSelect={(row) => go({ fn: name(row).key, fn_module: name(row).modulePath }, 'refine')}
        onActivate={(row) => go({ view: 'flame', search: name(row).full })}
        onMenu={(row, place) => openMenu(name(row), place)}
      />
    </>
  );
}

/** Two columns beside the names: the chosen cost, and one to compare it with. */
function neighbourCosts(cost: CostKey, isDiff: boolean): readonly CostKey[] {
  return isDiff ? [cost] : [cost, cost === 'allocations' ? 'peak_bytes' : 'allocations'];
}

type Neighbours = FunctionDetail['callers'];

function NeighbourTable(props: {
  readonly label: string;
  readonly none: string;
  readonly table: Neighbours;
  readonly detail: FunctionDetail;
  readonly cost: CostKey;
}): JSX.Element {
  const { table, detail } = props;
  const shown: Costed = { costs: table.inclusive, old: table.old_inclusive, errors: table.inclusive_errors, oldErrors: table.old_inclusive_errors };
  const [selected, setSelected] = useState(-1);
  const name = (row: number): CodeName => {
    const index = table.function[row] ?? null;
    const found = functionName(detail.code, index);
    return index === null ? { ...found, label: props.none, full: props.none } : found;
  };
  return (
    <section class="neighbours">
      <DataTable
        label={props.label}
        columns={[{ ...nameColumn(props.label, 180, name), narrowPx: 150 }, ...costColumns(shown, detail.inclusive, neighbourCosts(props.cost, shown.old !== null), useLiveWhen())]}
        count={table.count}
        selected={selected}
        sortBy={props.cost}
        onSort={(key) => go({ cost: key })}
        onSelect={setSelected}
        onActivate={(row) => {
          if ((table.function[row] ?? null) !== null) {
            openFunction(name(row));
          }
        }}
        empty="None."
      />
    </section>
  );
}

function Lines(props: { readonly detail: FunctionDetail; readonly cost: CostKey }): JSX.Element {
  const { detail, cost } = props;
  const [selected, setSelected] = useState(-1);
  const { locations } = detail;
  const columns: readonly Column[] = [
    {
      key: 'line',
      title: 'Source line',
      widthPx: 90,
      grows: true,
      cell: (row) => {
        const name = locationName(detail.code, locations.location[row]);
        return name.file === '' ? <span class="soft">unknown</span> : <PlaceLinks name={name} />;
      },
      saved: [{ head: 'Source line', value: (row) => fileLine(locationName(detail.code, locations.location[row])) || 'unknown' }],
    },
    ...lineColumns('self', 'Self', locations.self, locations.self_errors, detail.inclusive, cost),
    ...lineColumns('inclusive', 'Inclusive', locations.inclusive, locations.inclusive_errors, detail.inclusive, cost),
  ];
  return (
    <section class="neighbours">
      <DataTable label="Source lines" columns={columns} count={locations.count} selected={selected} onSelect={setSelected} empty="No source lines are known." />
    </section>
  );
}

function Detail(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const asked = useAsk(
    address.fn === '' ? null : 'function',
    {
      ...filterParams(address),
      ...(address.fn.startsWith('#') ? { id: address.fn.slice(1) } : { name: address.fn, in_module: address.fn_module }),
      costs: TABLE_COSTS.join(','),
      sort: address.cost,
      hide_wrappers: hideWrappers(address),
      diff: address.diff,
      sort_by: address.diff === '1' ? address.sort_by : '',
    },
    functionDetail,
  );
  if (address.fn === '') {
    return <p class="soft functions-hint">Select a function to see who called it, what it called, and its source lines.</p>;
  }
  return (
    <Pane asked={asked} label="Function">
      {(detail) => (
        <>
          <h2 class="functions-name" title={address.fn}>
            {functionName(detail.code, detail.function).label}
          </h2>
          <div class="functions-detail">
            <NeighbourTable label="Callers" none="the thread's entry" table={detail.callers} detail={detail} cost={address.cost} />
            <NeighbourTable label="Callees" none="itself" table={detail.callees} detail={detail} cost={address.cost} />
            <Lines detail={detail} cost={address.cost} />
          </div>
        </>
      )}
    </Pane>
  );
}

export function FunctionsView(): JSX.Element {
  const address = useAddress();
  const asked = useAsk('functions', functionsParams(address), functionsAnswer);
  return (
    <div class="view functions">
      <div class="toolbar">
        <Choice
          label="Costs"
          value={address.by_self}
          options={[
            { value: '', label: 'Inclusive' },
            { value: '1', label: 'Self' },
          ]}
          onChange={(by_self) => go({ by_self })}
        />
        <WrapperToggle />
        <span class="soft">Inclusive: with everything that it calls. Self: as the call site.</span>
      </div>
      <div class="functions-all">
        <Pane asked={asked} label="Functions">
          {(answer) => <AllFunctions answer={answer} address={address} />}
        </Pane>
      </div>
      <div class={address.fn === '' ? 'functions-none' : 'functions-one'}>
        <Detail address={address} />
      </div>
    </div>
  );
}
