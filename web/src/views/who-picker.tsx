// Picks one process or one thread for all views. Hidden unless the recording has several.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { processes as processesAnswer, threads as threadsAnswer } from '../api/answers';
import { inReport } from '../api/report-file';
import { processChoices, threadChoices, withCurrent, type Choice } from '../model/who';
import type { Address } from '../state/address';
import { go } from '../state/app-state';
import { useAsk } from '../state/hooks';
import { useMeta } from './parts/meta-context';

/** More options than these are only made once the pointer or the focus comes. */
const FEW_CHOICES = 200;
/** Any cost: only the names are shown. */
const CHEAP = { costs: 'allocations' };

function Picker(props: {
  readonly label: string;
  readonly all: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onChange: (value: string) => void;
}): JSX.Element {
  const { choices, value } = props;
  const [isUsed, setIsUsed] = useState(false);
  const shown = useMemo(() => withCurrent(isUsed || choices.length <= FEW_CHOICES ? choices : choices.filter((choice) => choice.value === value), value), [choices, value, isUsed]);
  const options = useMemo(
    () =>
      shown.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      )),
    [shown],
  );
  const use = (): void => setIsUsed(true);
  return (
    <select class="who" aria-label={props.label} value={value} onPointerEnter={use} onPointerDown={use} onFocus={use} onChange={(event) => props.onChange(event.currentTarget.value)}>
      <option value="">{props.all}</option>
      {options}
    </select>
  );
}

export function WhoPicker(props: { readonly address: Address }): JSX.Element | null {
  const { address } = props;
  const meta = useMeta();
  const hasProcesses = meta.processes > 1;
  const hasThreads = meta.threads > 1;
  const processes = useAsk(hasProcesses ? 'processes' : null, CHEAP, processesAnswer);
  const threads = useAsk(hasThreads ? 'threads' : null, CHEAP, threadsAnswer);
  const processesShown = useMemo(() => (processes.value === null ? [] : processChoices(processes.value.processes)), [processes.value]);
  const threadsShown = useMemo(() => (threads.value === null ? [] : threadChoices(threads.value.threads, address.process)), [threads.value, address.process]);
  if (!hasProcesses && !hasThreads) {
    return null;
  }
  return (
    <span class="who-pickers">
      {hasProcesses ? (
        <Picker
          label="Process"
          all="all processes"
          value={address.process}
          choices={processesShown}
          onChange={(process) => go({ process, thread: '', zoom: '' })}
        />
      ) : null}
      {hasThreads ? (
        <Picker
          label="Thread"
          all="all threads"
          value={address.thread}
          choices={threadsShown}
          onChange={(thread) => go({ thread, zoom: '', ...(inReport() ? { process: '' } : {}) })}
        />
      ) : null}
    </span>
  );
}
