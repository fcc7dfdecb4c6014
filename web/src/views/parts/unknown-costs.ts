// Costs with meaningless figures: the costs that an imported file does not have, whose columns are
// not shown, and the costs that the filter makes unknown, whose cells say so.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { CostKey } from '../../model/cost';
import { useMeta } from './meta-context';

/** Unknown under the filter, from its answer. */
export const UnavailableCosts = createContext<readonly CostKey[]>([]);

/** Whether the file has the cost at all. */
export function useKnows(): (cost: CostKey) => boolean {
  const { unknown } = useMeta().run;
  return (cost) => !unknown.includes(cost);
}

/** Whether a figure of the cost is meaningful. */
export function useTells(): (cost: CostKey) => boolean {
  const knows = useKnows();
  const unavailable = useContext(UnavailableCosts);
  return (cost) => knows(cost) && !unavailable.includes(cost);
}
