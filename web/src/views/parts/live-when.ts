// When the blocks are live that the leaked costs of the page count (model/cost.ts).
import type { LiveWhen } from '../../model/cost';
import { isMoment } from '../../state/address';
import { useAddress } from '../../state/hooks';
import { useMeta } from './meta-context';

export function useLiveWhen(): LiveWhen {
  const address = useAddress();
  const isEnd = useHasEnded();
  const { state } = useMeta();
  return isMoment(address) ? 'then' : isEnd ? 'end' : state === 'running' ? 'now' : 'stop';
}

/** Whether all recorded processes have ended: what a process that runs has not freed, it may free yet. */
export function useHasEnded(): boolean {
  return useMeta().run.ended;
}
