// Errors of what a report page adds up itself: nodes of a tree whose wrapper frames it folds, and the stacks that a search
// matches. The server's figures carry their errors. The rule is that of docs/format/json.md, `variance`. Pure.
import { isBytes } from '../model/cost';

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
  const squares = isBytes(cost) ? sum : Math.min(sizes.inverse, sum / sizes.shortest);
  return Math.ceil(2 * Math.sqrt(variance * squares));
}
