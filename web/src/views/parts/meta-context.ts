// The answer of /meta, for every view below.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Meta } from '../../api/answers';
import { inReport } from '../../api/report-file';
import { formatMs } from '../../base/format';
import { comparesFiles, comparesRanges } from '../../state/address';
import { useAddress } from '../../state/hooks';

export const MetaContext = createContext<Meta | null>(null);

export function useMeta(): Meta {
  const meta = useContext(MetaContext);
  if (meta === null) {
    throw new Error('a view stands outside of MetaContext');
  }
  return meta;
}

/**
 * Whether the recording has the data that a view needs; unknown capabilities count as present. A
 * report file has no time ranges.
 */
export function useCapability(name: string): boolean {
  return useMeta().capabilities[name] !== false && !(name === 'time_range' && inReport());
}

/** Whether two recordings are compared. */
export function useComparison(): boolean {
  const { baseline } = useMeta();
  return comparesFiles(useAddress()) && baseline !== null;
}

/** What the recording, or a part of it, is compared with; "": nothing. */
export function useComparedWith(): string {
  const { baseline } = useMeta();
  const address = useAddress();
  if (comparesRanges(address)) {
    return `${formatMs(Number(address.old_from_ms))} to ${formatMs(Number(address.old_to_ms))}`;
  }
  return comparesFiles(address) ? (baseline?.file.name ?? '') : '';
}
