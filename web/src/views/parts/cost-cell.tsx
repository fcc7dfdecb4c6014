// A cost in a table: its number over a bar of its share of the total; in a comparison the old
// value, the new value, and the change.
import type { JSX } from 'preact';
import { at } from '../../base/columns';
import { formatPercent, formatPercentError } from '../../base/format';
import { changeError, costTitle, costWidths, formatCost, formatCostBeside, formatCostChange, formatCostExact, isBytes, OLD_NEW_CHANGE, type CostKey, type LiveWhen } from '../../model/cost';
import type { SavedColumn } from '../../model/table-text';
import type { CostColumns } from '../../model/tree';
import type { Column } from './data-table';
import { useLiveWhen } from './live-when';
import { useTells } from './unknown-costs';
import './cost-cell.css';

/** The figures of a cell. */
export interface CostFigures {
  readonly value: number;
  readonly total: number;
  /** The old value in a diff. */
  readonly old?: number | undefined;
  /** Two standard errors of an estimate, and of the old value. */
  readonly error?: number | undefined;
  readonly oldError?: number | undefined;
}

interface CostCellProps extends CostFigures {
  readonly cost: CostKey;
}

/** The error of a row; undefined if the column is exact. */
export function errorAt(errors: CostColumns | null | undefined, cost: CostKey, row: number): number | undefined {
  return errors === null || errors === undefined ? undefined : at(errors[cost], row);
}

function withError(cost: CostKey, error: number | undefined): string {
  return error === undefined || error === 0 ? '' : ` ± ${formatCostExact(cost, error)} in 95 of 100 cases`;
}

function title(props: CostCellProps, when: LiveWhen): string {
  const now = `${costTitle(props.cost, when)}: ${formatCostExact(props.cost, props.value)}${withError(props.cost, props.error)}`;
  if (props.old !== undefined) {
    const change = changeError(props.error, props.oldError);
    const changed = change === 0 ? '' : `\nchange: ${formatCostChange(props.cost, props.value - props.old)}${withError(props.cost, change)}`;
    return `${now}\nbefore: ${formatCostExact(props.cost, props.old)}${withError(props.cost, props.oldError)}${changed}`;
  }
  return `${now}\n${formatPercent(props.value, props.total)} of ${formatCostExact(props.cost, props.total)}`;
}

function CostCell(props: CostCellProps): JSX.Element {
  const { cost, value, total, old } = props;
  const tells = useTells();
  const when = useLiveWhen();
  if (!tells(cost)) {
    return (
      <span class="cost" title={`${costTitle(cost, when)}: not known under this filter`}>
        <span class="cost-zero">unknown</span>
      </span>
    );
  }
  const share = total > 0 ? Math.min((value / total) * 100, 100) : 0;
  const change = old === undefined ? 0 : value - old;
  const hasErrors = props.error !== undefined || props.oldError !== undefined;
  const error = changeError(props.error, props.oldError);
  return (
    <span class="cost" title={title(props, when)}>
      <span class="cost-bar" style={{ width: `${share.toFixed(2)}%` }} />
      {old === undefined ? (
        <>
          <span class={value === 0 ? 'cost-value cost-zero' : 'cost-value'}>{formatCost(cost, value)}</span>
          {props.error === undefined ? null : <span class="cost-error">{formatPercentError(value, props.error)}</span>}
          <span class="cost-share">{value === 0 || Number.isNaN(value) ? '' : formatPercent(value, total)}</span>
        </>
      ) : (
        <>
          <span class="cost-old">{formatCostBeside(cost, old)}</span>
          <span class="cost-new">{formatCostBeside(cost, value)}</span>
          <span class={change > 0 ? 'cost-change cost-more' : change < 0 ? 'cost-change cost-less' : 'cost-change'}>
            {change === 0 ? '=' : formatCostChange(cost, change)}
          </span>
          {hasErrors ? <span class="cost-error">{error > 0 ? `±${formatCost(cost, error)}` : ''}</span> : null}
        </>
      )}
    </span>
  );
}

/** What a column of a cost shows. */
export interface CostShape {
  readonly title: string;
  readonly isDiff: boolean;
  readonly hasErrors: boolean;
}

/** Old and new figures, each with its error in 95 of 100 cases. The change is their difference. */
function savedCosts(cost: CostKey, shape: CostShape, figures: (row: number) => CostFigures): readonly SavedColumn[] {
  const unit = isBytes(cost) && !/bytes$/i.test(shape.title) ? ' (bytes)' : '';
  const saved = (what: string, value: (of: CostFigures) => number | undefined): SavedColumn => ({
    head: `${shape.title}${what}${unit}`,
    cost,
    value: (row) => value(figures(row)) ?? '',
  });
  return [
    ...(shape.isDiff ? [saved(' before', (of) => of.old)] : []),
    ...(shape.isDiff && shape.hasErrors ? [saved(' before ±', (of) => of.oldError)] : []),
    saved('', (of) => of.value),
    ...(shape.hasErrors ? [saved(' ±', (of) => of.error)] : []),
  ];
}

export function costColumn(cost: CostKey, shape: CostShape, figures: (row: number) => CostFigures): Column {
  return {
    key: cost,
    title: shape.isDiff ? `${shape.title}${OLD_NEW_CHANGE}` : shape.title,
    ...costWidths(cost, shape.isDiff, shape.hasErrors),
    numeric: true,
    cell: (row) => <CostCell cost={cost} {...figures(row)} />,
    saved: savedCosts(cost, shape, figures),
  };
}
