// Errors of what a report page adds up itself: nodes of a tree whose wrapper frames it folds, and the stacks that a search
// matches. The server's figures carry their errors. The rule is that of docs/format/json.md, `variance`. Pure.
import { isBytes } from '../model/cost';

/** `variance` is that many times BYTES. */
const WEIGHT_SPREAD = 9 / 8;

/** The sizes of the blocks of a sum, as the columns `inverse_lengths` and `shortest_length` have them. */
export interface Sizes {
  inverse: number;
  shortest: number;
}

export function addSizes(sum: Sizes, part: Sizes): void {
  sum.inverse += part.inverse;
  if (part.shortest !== 0 && (sum.shortest === 0 || part.shortest < sum.shortest)) {
    sum.shortest = part.shortest;
  }
}

/** The error of a sum of one cost; 0 if it is unknown. */
export function errorOf(variance: number, cost: string, sum: number, sizes: Sizes): number {
  if (sum === 0 || cost === 'own_peak_bytes') {
    return 0;
  }
  if (isBytes(cost)) {
    return Math.ceil(2 * Math.sqrt(variance * sum));
  }
  const seen = 2 * Math.sqrt(variance * Math.min(sizes.inverse, sum / sizes.shortest));
  const spread = sum / (sizes.inverse * sizes.shortest);
  const octaves = Math.min(2 * Math.log2(Math.max(spread, 1)), Math.log2(sizes.shortest));
  const unseen = ((3 * variance) / WEIGHT_SPREAD / sizes.shortest) * octaves;
  return Math.ceil(Math.sqrt(seen * seen + unseen * unseen));
}
