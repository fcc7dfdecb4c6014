// When the blocks are live that the leaked costs of the page count (model/cost.ts).
import type { LiveWhen } from '../../model/cost';
import { isMoment } from '../../state/address';
import { useAddress } from '../../state/hooks';
import { useMeta } from './meta-context';

export function useLiveWhen(): LiveWhen {
  const address = useAddress();
  const { state } = useMeta();
  return isMoment(address) ? 'then' : state === 'running' ? 'now' : 'end';
}
