// The words for the change of a total, exact and estimated.
import { describe, expect, it } from 'vitest';
import { totalChange, type ComparedTotals } from './total-change';

const EXACT = { totals_errors: null, baseline_totals_errors: null };

function compared(more: Partial<ComparedTotals>): ComparedTotals {
  return {
    totals: { peak_bytes: 3000, peak_error_bytes: 5000, allocations: 40 },
    baseline_totals: { peak_bytes: 2000, peak_error_bytes: 5000, allocations: 50 },
    selection: EXACT,
    ...more,
  };
}

describe('the change of a total', () => {
  it('is plain, whatever blocks were in flight', () => {
    expect(totalChange(compared({}), 'peak_bytes', false)).toBe('+1000 B (+50.0%)');
    expect(totalChange(compared({}), 'allocations', false)).toBe('-10 (-20.0%)');
  });
  it('has the errors of both peaks in the order of the program', () => {
    const inexact = compared({
      totals: { peak_bytes: 3000, peak_order_error_bytes: 100 },
      baseline_totals: { peak_bytes: 2000, peak_order_error_bytes: 20 },
    });
    expect(totalChange(inexact, 'peak_bytes', false)).toBe('+1000 B ±120 B (+50.0%)');
  });
  it('has the errors of estimates, of the peak only if it is a part', () => {
    const sampled = compared({ selection: { totals_errors: { allocations: 3, peak_bytes: 300 }, baseline_totals_errors: { allocations: 4, peak_bytes: 400 } } });
    expect(totalChange(sampled, 'allocations', false)).toBe('-10 ±5 (-20.0%)');
    expect(totalChange(sampled, 'peak_bytes', false)).toBe('+1000 B (+50.0%)');
    expect(totalChange(sampled, 'peak_bytes', true)).toBe('+1000 B ±500 B (+50.0%)');
    const known = { ...sampled, totals: { peak_bytes: 3000, peak_order_error_bytes: 60 }, baseline_totals: { peak_bytes: 2000, peak_order_error_bytes: 80 } };
    expect(totalChange(known, 'peak_bytes', false)).toBe('+1000 B ±100 B (+50.0%)');
  });
});
