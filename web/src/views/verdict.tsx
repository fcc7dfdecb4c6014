// The verdict of a comparison, on every view: whether something grew, and what grew most.
import type { JSX } from 'preact';
import { verdict as verdictAnswer } from '../api/answers';
import { filterParams } from '../state/address';
import { useAddress, useAsk } from '../state/hooks';
import { useComparedWith } from './parts/meta-context';
import './verdict.css';

export function Verdict(): JSX.Element | null {
  const address = useAddress();
  const other = useComparedWith();
  const isOn = other !== '';
  const asked = useAsk(isOn ? 'verdict' : null, { ...filterParams(address), diff: address.diff }, verdictAnswer);
  const verdict = asked.value?.verdict ?? null;
  if (!isOn || verdict === null) {
    return null;
  }
  return (
    <p class={verdict.grew ? 'verdict verdict-grew' : 'verdict'} role="status" data-testid="verdict">
      <strong>{`Compared with ${other}: `}</strong>
      {`${verdict.sentence}.`}
    </p>
  );
}
