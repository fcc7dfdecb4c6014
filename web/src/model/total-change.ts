// The change of a total in a comparison, as `cairn diff` states it: the plain difference, and its
// error. Pure.
import { formatRatio } from '../base/format';
import { changeError, formatCost, formatCostChange, type CostKey } from './cost';

type Figures = Readonly<Record<string, number>>;

export interface ComparedTotals {
  readonly totals: Figures;
  readonly baseline_totals: Figures | null;
  readonly selection: { readonly totals_errors: Figures | null; readonly baseline_totals_errors: Figures | null };
}

interface PeakError {
  readonly ofEstimate: number;
  readonly bound: number;
}

/** A part of the heap has two errors: that of the whole heap's peak, and that of its own estimate. */
function peakError(totals: Figures | null, errors: Figures | null, isPart: boolean): PeakError {
  const whole = totals?.['peak_order_error_bytes'] ?? 0;
  return errors === null ? { ofEstimate: 0, bound: whole } : { ofEstimate: whole + (isPart ? (errors['peak_bytes'] ?? 0) : 0), bound: 0 };
}

/** The peaks are those of the program's own order. Errors of estimates are independent; bounds add up. */
function errorOfChange(compared: ComparedTotals, cost: CostKey, isPart: boolean): number {
  const { totals, baseline_totals: old, selection } = compared;
  if (cost !== 'peak_bytes') {
    return changeError(selection.totals_errors?.[cost], selection.baseline_totals_errors?.[cost]);
  }
  const now = peakError(totals, selection.totals_errors, isPart);
  const before = peakError(old, selection.baseline_totals_errors, isPart);
  return changeError(now.ofEstimate, before.ofEstimate) + now.bound + before.bound;
}

/** "+24.4 KiB ±352 B (+50.0%)". */
export function totalChange(compared: ComparedTotals, cost: CostKey, isPart: boolean): string {
  const value = compared.totals[cost] ?? 0;
  const old = compared.baseline_totals?.[cost] ?? 0;
  const error = errorOfChange(compared, cost, isPart);
  return `${formatCostChange(cost, value - old)}${error > 0 ? ` ±${formatCost(cost, Math.round(error))}` : ''} (${formatRatio(value, old)})`;
}
