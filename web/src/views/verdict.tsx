// The verdict of a comparison, on every view: whether something grew, and what grew most.
import type { JSX } from 'preact';
import { verdict as verdictAnswer } from '../api/answers';
import { filterParams } from '../state/address';
import { useAddress, useAsk } from '../state/hooks';
import { useComparison, useMeta } from './parts/meta-context';
import './verdict.css';

export function Verdict(): JSX.Element | null {
  const address = useAddress();
  const { baseline } = useMeta();
  const isOn = useComparison();
  const asked = useAsk(isOn ? 'verdict' : null, { ...filterParams(address), diff: address.diff }, verdictAnswer);
  const verdict = asked.value?.verdict ?? null;
  if (!isOn || verdict === null || baseline === null) {
    return null;
  }
  return (
    <p class={verdict.grew ? 'verdict verdict-grew' : 'verdict'} role="status" data-testid="verdict">
      <strong>{`Compared with ${baseline.file.name}: `}</strong>
      {`${verdict.sentence}.`}
    </p>
  );
}
