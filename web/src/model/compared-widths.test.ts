// Tests of the widths of frames in a comparison, on a drawn tree.
import { describe, expect, it } from 'vitest';
import { comparedWidths } from './compared-widths';

// all -> main -> load, and a function that is gone.
const nodes = {
  count: 4,
  parent: [null, 0, 1, 1],
  total: { peak_bytes: [100, 100, 90, 0] },
  old_total: { peak_bytes: [160, 160, 100, 60] },
};

describe('comparedWidths', () => {
  it('is the cost where nothing is compared', () => {
    expect(comparedWidths({ ...nodes, old_total: null }, 'peak_bytes')).toEqual([100, 100, 90, 0]);
  });

  it('gives a frame that is gone its old width, and one that shrank the larger one', () => {
    // main itself has 10 now and nothing before
    expect(comparedWidths(nodes, 'peak_bytes')).toEqual([170, 170, 100, 60]);
  });

  it('is the larger side of frames without others', () => {
    const grown = { ...nodes, total: { peak_bytes: [200, 200, 200, 0] }, old_total: { peak_bytes: [50, 50, 50, 0] } };
    expect(comparedWidths(grown, 'peak_bytes')).toEqual([200, 200, 200, 0]);
  });
});
