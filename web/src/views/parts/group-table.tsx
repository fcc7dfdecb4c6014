// A table of groups with their costs, sorted here: groups are few and loaded at once. In a
// comparison it has the rows of both recordings, matched by name.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { at } from '../../base/columns';
import { costMeaning, costTitle, type CostKey, type LiveWhen } from '../../model/cost';
import { matchRows, type MatchedRow } from '../../model/match';
import type { Cell } from '../../model/table-text';
import type { CostColumns } from '../../model/tree';
import { go } from '../../state/app-state';
import { useAddress } from '../../state/hooks';
import { costColumn, errorAt } from './cost-cell';
import { DataTable, type Column } from './data-table';
import { useLiveWhen } from './live-when';
import { useSubjectRow } from './subject';

/** One recording's side of the table. */
export interface GroupSide {
  readonly count: number;
  readonly costs: CostColumns;
  readonly errors: CostColumns | null;
  readonly totals: Readonly<Record<string, number>>;
  /** The name of a row, which matches the two sides. */
  readonly key: (row: number) => string;
  /** What addresses call the row when it is the page's subject; "": nothing. */
  readonly id: (row: number) => string;
  readonly texts: readonly GroupText[];
}

/** A cell beside the costs: on the page, and what files have of it. */
export interface GroupText {
  readonly text: (row: number) => string;
  readonly values: (row: number) => readonly Cell[];
}

export interface TextColumn {
  readonly title: string;
  readonly help?: string;
  readonly widthPx: number;
  readonly narrowPx?: number;
  readonly spare?: number;
  readonly numeric?: boolean;
  /** In files, one for each of the values. */
  readonly heads: readonly string[];
}

/** Files have the same text. */
export function groupText(text: (row: number) => string): GroupText {
  return { text, values: (row) => [text(row)] };
}

function valueOf(side: GroupSide | null, cost: CostKey, row: number | null): number {
  return side === null || row === null ? 0 : at(side.costs[cost], row);
}

function errorOf(side: GroupSide | null, cost: CostKey, row: number | null): number | undefined {
  return side === null || row === null ? undefined : errorAt(side.errors, cost, row);
}

function keys(side: GroupSide): readonly string[] {
  return Array.from({ length: side.count }, (_, row) => side.key(row));
}

/** Highest first by the larger of both sides; ties keep their order. */
function sortedRows(now: GroupSide, old: GroupSide | null, cost: CostKey): readonly MatchedRow[] {
  const rows = old === null ? keys(now).map((_, row) => ({ now: row, old: null })) : [...matchRows(keys(now), keys(old))];
  const score = (row: MatchedRow): number => Math.max(valueOf(now, cost, row.now), valueOf(old, cost, row.old));
  return rows.sort((a, b) => score(b) - score(a));
}

interface GroupTableProps {
  readonly label: string;
  readonly texts: readonly TextColumn[];
  readonly costs: readonly CostKey[];
  readonly sortBy: CostKey;
  readonly now: GroupSide;
  readonly old: GroupSide | null;
  readonly onOnly: (row: number) => void;
}

function groupCost(cost: CostKey, props: GroupTableProps, rows: readonly MatchedRow[], when: LiveWhen): Column {
  const { now, old } = props;
  const shape = { title: costTitle(cost, when), isDiff: old !== null, hasErrors: (now.errors ?? old?.errors ?? null) !== null };
  return {
    ...costColumn(cost, shape, (row) => ({
      value: valueOf(now, cost, rows[row]?.now ?? null),
      total: now.totals[cost] ?? 0,
      old: old === null ? undefined : valueOf(old, cost, rows[row]?.old ?? null),
      error: errorOf(now, cost, rows[row]?.now ?? null),
      oldError: errorOf(old, cost, rows[row]?.old ?? null),
    })),
    help: `${costMeaning(cost, when)}: sort by this`,
    sortable: true,
  };
}

/** Costs are left out before the columns that say who it is. */
const SPARE_COSTS = 10;

function onlyColumn(rows: readonly MatchedRow[], only: (row: number) => void): Column {
  return {
    key: 'filter',
    title: 'Filter',
    widthPx: 58,
    narrowPx: 50,
    cell: (row) =>
      (rows[row]?.now ?? null) === null ? (
        <span class="soft" title="only in the recording compared with">
          gone
        </span>
      ) : (
        <button type="button" class="link" title="show only this, in all views" onClick={() => only(row)}>
          only
        </button>
      ),
    saved: [],
  };
}

export function GroupTable(props: GroupTableProps): JSX.Element {
  const { now, old, sortBy } = props;
  const when = useLiveWhen();
  const address = useAddress();
  const rows = useMemo(() => sortedRows(now, old, sortBy), [now, old, sortBy]);
  const { selected, isAbout, select } = useSubjectRow(rows.length, (row) => (rows[row]?.now ?? null) !== null && now.id(rows[row]?.now ?? 0) === address.subject, rows);
  const only = (row: number): void => {
    const own = rows[row]?.now ?? null;
    if (own !== null) {
      props.onOnly(own);
    }
  };
  /** The side that has the row, and its place there. */
  const place = (row: number): readonly [GroupSide | null, number] => {
    const matched = rows[row];
    return [matched?.now === null ? old : now, matched?.now ?? matched?.old ?? 0];
  };
  const text = (column: number, row: number): string => {
    const [side, own] = place(row);
    return side?.texts[column]?.text(own) ?? '';
  };
  const saved = (column: number, value: number, row: number): Cell => {
    const [side, own] = place(row);
    return side?.texts[column]?.values(own)[value] ?? '';
  };
  // The first one has the texts of the columns that there is no room for.
  const all = (row: number): string => props.texts.map((column, index) => (index === 0 ? text(0, row) : `${column.title}: ${text(index, row)}`)).join('\n');
  const texts = props.texts.map((column, index) => ({
    ...column,
    key: `text${index}`,
    grows: index === 0,
    cell: (row: number) => (
      <span title={index === 0 ? all(row) : text(index, row)} class={column.numeric === true ? 'group-text group-number' : 'group-text'}>
        {text(index, row)}
      </span>
    ),
    saved: column.heads.map((head, value) => ({ head, value: (row: number) => saved(index, value, row) })),
  }));
  return (
    <DataTable
      label={props.label}
      columns={[...texts, ...props.costs.map((cost, index) => ({ ...groupCost(cost, props, rows, when), spare: SPARE_COSTS + index })), onlyColumn(rows, only)]}
      count={rows.length}
      selected={selected}
      sortBy={sortBy}
      onSort={(cost) => go({ cost })}
      isAbout={isAbout}
      onSelect={select}
      onActivate={only}
    />
  );
}
