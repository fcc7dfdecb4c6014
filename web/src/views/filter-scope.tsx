// The selection of the filter, requested once for all users: the line with the share that passes,
// and the costs that the filter makes unknown.
import { createContext, type ComponentChildren, type JSX } from 'preact';
import { useContext, useEffect } from 'preact/hooks';
import { summary, type Selection, type Summary } from '../api/answers';
import { ALL_COSTS, type CostKey } from '../model/cost';
import { filterParams, isFiltered } from '../state/address';
import { go } from '../state/app-state';
import { isCurrent, useAddress, useAsk, type Asked } from '../state/hooks';
import { UnavailableCosts, useKnows } from './parts/unknown-costs';

const NOTHING: readonly CostKey[] = [];
const Passed = createContext<Asked<Summary> | null>(null);

/** The summary of the selection; null without a filter. */
export function usePassed(): Asked<Summary> | null {
  return useContext(Passed);
}

/** The ranges of the filter as the recording applies them; null without an answer. */
export function useApplied(): Selection['filter'] | null {
  const asked = usePassed();
  return asked !== null && isCurrent(asked) ? (asked.value?.selection.filter ?? null) : null;
}

export function FilterScope(props: { readonly children: ComponentChildren }): JSX.Element {
  const address = useAddress();
  const knows = useKnows();
  const isOn = isFiltered(address);
  // The same query as the summary's own, so that both share one answer.
  const diff = address.view === 'summary' ? address.diff : '';
  const asked = useAsk(isOn ? 'summary' : null, { ...filterParams(address), diff }, summary);
  // The sort key must be a cost that the file has.
  const cost = knows(address.cost) ? address.cost : (ALL_COSTS.find(knows) ?? address.cost);
  useEffect(() => go({ cost }, 'refine'), [cost, address.cost]);
  return (
    <UnavailableCosts.Provider value={asked.value?.selection.unavailable ?? NOTHING}>
      <Passed.Provider value={isOn ? asked : null}>{props.children}</Passed.Provider>
    </UnavailableCosts.Provider>
  );
}
