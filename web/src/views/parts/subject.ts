// The subject of a page: the call site, thread or process whose card or link led there. Its row is selected, and the others step back
// until the reader selects one.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { range } from '../../base/columns';
import type { CodeName } from '../../model/code';
import type { Address } from '../../state/address';
import { go } from '../../state/app-state';
import { useAddress } from '../../state/hooks';

/** The fields that make a call site the subject of the next page. */
export function asSubject(name: CodeName): Partial<Address> {
  return name.full === '' ? {} : { subject: name.full, subject_line: name.line === 0 ? '' : String(name.line) };
}

export function isSubject(address: Address, name: CodeName): boolean {
  return address.subject !== '' && name.full === address.subject && (address.subject_line === '' || String(name.line) === address.subject_line);
}

interface Subject {
  readonly selected: number;
  readonly isAbout: boolean;
  readonly select: (row: number) => void;
}

/** The selected row of a table of call sites. At first it is the row of the subject, if there is one. `of`: the object that has the names. */
export function useSubject(count: number, name: (row: number) => CodeName, of: unknown, otherwise = -1): Subject {
  const address = useAddress();
  return useSubjectRow(count, (row) => isSubject(address, name(row)), of, otherwise);
}

/** The same of a table of anything: `is` says whether a row is the subject. */
export function useSubjectRow(count: number, is: (row: number) => boolean, of: unknown, otherwise = -1): Subject {
  const address = useAddress();
  const found = useMemo(() => (address.subject === '' ? -1 : range(count).findIndex(is)), [count, of, address.subject, address.subject_line]);
  const [selected, setSelected] = useState(otherwise);
  useEffect(() => {
    if (found >= 0) {
      setSelected(found);
    }
  }, [found]);
  return {
    selected,
    isAbout: found >= 0 && selected === found,
    select: (row) => {
      setSelected(row);
      if (row !== found) {
        go({ subject: '', subject_line: '' }, 'refine');
      }
    },
  };
}
