// Costs whose figures mean nothing: those that an imported file cannot know, whose columns are not shown at all, and
// those that the filter leaves unknown, whose cells say so.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { CostKey } from '../../model/cost';
import { useMeta } from './meta-context';

/** By the filter, as its answer says. */
export const UnavailableCosts = createContext<readonly CostKey[]>([]);

/** Whether the file knows the cost at all. */
export function useKnows(): (cost: CostKey) => boolean {
  const { unknown } = useMeta().run;
  return (cost) => !unknown.includes(cost);
}

/** Whether a figure of the cost means something. */
export function useTells(): (cost: CostKey) => boolean {
  const knows = useKnows();
  const unavailable = useContext(UnavailableCosts);
  return (cost) => knows(cost) && !unavailable.includes(cost);
}
