// What an empty view says: a filter that lets nothing through is another matter than a program that did nothing.
import { isFiltered } from '../../state/address';
import { useAddress } from '../../state/hooks';

export function useNothing(): string {
  return isFiltered(useAddress()) ? 'Nothing passes the filter.' : 'Nothing of the kind was recorded.';
}
