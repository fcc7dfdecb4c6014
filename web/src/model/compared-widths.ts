// The widths of frames in a flame graph. In a comparison a frame that is gone has a box, too: what a
// frame has beside its children takes the larger of old and new. Pure.
import { at } from '../base/columns';
import type { CostKey } from './cost';

export interface ComparedNodes {
  readonly count: number;
  readonly parent: readonly (number | null)[];
  readonly total: Readonly<Record<CostKey, readonly number[]>>;
  readonly old_total: Readonly<Record<CostKey, readonly number[]>> | null;
}

/** Parents come before their children. */
export function comparedWidths(nodes: ComparedNodes, cost: CostKey): readonly number[] {
  const now = nodes.total[cost] ?? [];
  const old = nodes.old_total?.[cost];
  if (old === undefined) {
    return now;
  }
  const ownNow = [...now];
  const ownOld = [...old];
  for (let i = nodes.count - 1; i > 0; i--) {
    const parent = nodes.parent[i] ?? 0;
    ownNow[parent] = at(ownNow, parent) - at(now, i);
    ownOld[parent] = at(ownOld, parent) - at(old, i);
  }
  const widths = ownNow.map((own, i) => Math.max(own, at(ownOld, i), 0));
  for (let i = nodes.count - 1; i > 0; i--) {
    const parent = nodes.parent[i] ?? 0;
    widths[parent] = at(widths, parent) + at(widths, i);
  }
  return widths;
}
