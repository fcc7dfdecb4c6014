// The second recording of a comparison: choose it, turn the comparison on and off, remove it.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { putBaseline } from '../api/client';
import { comparesRanges, type Address } from '../state/address';
import { askAgain, go, setNotice, stopComparingTime } from '../state/app-state';
import { useAddress } from '../state/hooks';
import { ToggleButton } from './parts/controls';
import { useMeta } from './parts/meta-context';

function ByChange(props: { readonly address: Address }): JSX.Element {
  return (
    <ToggleButton
      isOn={props.address.sort_by === 'change'}
      label="By change"
      title="Sort by the size of the change, not by the larger of old and new"
      onChange={(on) => go({ sort_by: on ? 'change' : 'larger' })}
    />
  );
}

export function Compare(): JSX.Element {
  const meta = useMeta();
  const address = useAddress();
  const input = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const put = async (file: File | null): Promise<void> => {
    setBusy(true);
    const result = await putBaseline(file);
    setBusy(false);
    if (result.ok) {
      setNotice('');
      go({ diff: file === null ? '' : '1', zoom: '' });
      askAgain();
    } else {
      setNotice(`${result.error.message}.`);
    }
  };
  return (
    <>
      <input
        ref={input}
        type="file"
        class="visually-hidden"
        tabIndex={-1}
        aria-label="Recording to compare with"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file !== undefined) {
            void put(file);
          }
          event.currentTarget.value = '';
        }}
      />
      {comparesRanges(address) ? (
        <>
          <ByChange address={address} />
          <button type="button" onClick={stopComparingTime} title="Show the first range alone again">
            Stop comparing
          </button>
        </>
      ) : meta.baseline === null ? (
        <button type="button" disabled={busy} onClick={() => input.current?.click()} title="Show every number beside that of an older recording">
          {busy ? 'Reading…' : 'Compare with…'}
        </button>
      ) : (
        <>
          <ToggleButton
            isOn={address.diff === '1'}
            label={`Against ${meta.baseline.file.name}`}
            title="Tables show the change; flame graph frames are red where more, blue where less"
            onChange={(on) => go({ diff: on ? '1' : '', zoom: '' })}
          />
          {address.diff === '1' ? (
            <ByChange address={address} />
          ) : null}
          <button type="button" aria-label="Forget the recording compared with" title="Forget it" onClick={() => void put(null)}>
            ×
          </button>
        </>
      )}
    </>
  );
}
