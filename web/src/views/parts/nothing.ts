// The text of an empty view: a filter without a match differs from a program without events.
import { isFiltered } from '../../state/address';
import { useAddress } from '../../state/hooks';

export function useNothing(): string {
  return isFiltered(useAddress()) ? 'Nothing passes the filter.' : 'Nothing of the kind was recorded.';
}
