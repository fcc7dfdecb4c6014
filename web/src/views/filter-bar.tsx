// The filter that every view obeys: what it is, what it lets through, and how to change it.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { summary } from '../api/answers';
import { inReport } from '../api/report-file';
import { formatMs, formatPercent } from '../base/format';
import { costTitle, formatCost } from '../model/cost';
import {
  FILTER_FIELDS,
  filterParams,
  isFiltered,
  isMoment,
  type Address,
  type FilterField,
} from '../state/address';
import { go, resetFilter } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { RegexToggle } from './parts/controls';
import { ReportNote } from './report-note';
import { WhoPicker } from './who-picker';
import './filter-bar.css';

const KINDS = [
  { field: 'function', label: 'Function' },
  { field: 'file', label: 'File' },
  { field: 'module', label: 'Module' },
] as const;
type Kind = (typeof KINDS)[number]['field'];

const CHIP_LABELS: Readonly<Record<FilterField, string>> = {
  function: 'function has',
  function_regex: 'function matches',
  file: 'file has',
  file_regex: 'file matches',
  module: 'module has',
  module_regex: 'module matches',
  process: 'process',
  thread: 'thread',
  from_ms: 'from',
  to_ms: 'to',
  classes: 'blocks',
};

const CLASS_SETS = [
  { value: '', label: 'allocated inside' },
  { value: 'in_out', label: 'allocated inside, alive at its end' },
  { value: 'in_in', label: 'allocated and freed inside' },
  { value: 'out_in', label: 'allocated before, freed inside' },
  { value: 'out_out', label: 'allocated before, alive at its end' },
  { value: 'in_in,in_out,out_in,out_out', label: 'all that lived inside' },
] as const;

function chipText(address: Address, field: FilterField): string {
  const value = address[field];
  if (field === 'from_ms' || field === 'to_ms') {
    return formatMs(Number(value));
  }
  return value;
}

function Chip(props: { readonly label: string; readonly value: string; readonly onRemove: () => void }): JSX.Element {
  return (
    <li class="chip">
      <span class="soft">{props.label}</span> <span class="chip-value">{props.value}</span>
      <button type="button" class="chip-remove" aria-label={`remove filter: ${props.label} ${props.value}`} onClick={props.onRemove}>
        ×
      </button>
    </li>
  );
}

function TimeChip(props: { readonly address: Address }): JSX.Element | null {
  const { address } = props;
  if (address.from_ms === '' && address.to_ms === '') {
    return null;
  }
  const text = isMoment(address)
    ? `the heap as it stood at ${formatMs(Number(address.to_ms))}`
    : `${formatMs(Number(address.from_ms))} to ${address.to_ms === '' ? 'the end' : formatMs(Number(address.to_ms))}`;
  return (
    <>
      <Chip label="time" value={text} onRemove={() => go({ from_ms: '', to_ms: '', classes: '', zoom: '' })} />
      {isMoment(address) ? null : (
        <li>
          <label>
            <span class="visually-hidden">Which blocks the time range counts</span>
            <select value={address.classes} onChange={(event) => go({ classes: event.currentTarget.value, zoom: '' })}>
              {CLASS_SETS.map((set) => (
                <option key={set.value} value={set.value}>
                  {set.label}
                </option>
              ))}
            </select>
          </label>
        </li>
      )}
    </>
  );
}

function Chips(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const shown = FILTER_FIELDS.filter(
    (field) => !['from_ms', 'to_ms', 'classes'].includes(field) && address[field] !== '',
  );
  return (
    <ul class="filter-chips" aria-label="Active filters">
      {shown.map((field) => (
        <Chip
          key={field}
          label={CHIP_LABELS[field]}
          value={chipText(address, field)}
          onRemove={() => go({ [field]: '', zoom: '' })}
        />
      ))}
      <TimeChip address={address} />
    </ul>
  );
}

/** How much of the recording passes. */
function Share(props: { readonly address: Address }): JSX.Element | null {
  const { address } = props;
  const cost = isMoment(address) && address.cost === 'peak_bytes' ? 'leaked_bytes' : address.cost;
  const asked = useAsk(isFiltered(address) ? 'summary' : null, { ...filterParams(address), limit: '1' }, summary);
  if (!isFiltered(address)) {
    return <p class="filter-share soft">Nothing is filtered: these are the numbers of the whole recording.</p>;
  }
  if (asked.error !== null) {
    return (
      <p class="filter-share filter-bad" role="alert">
        {asked.error.message}
      </p>
    );
  }
  const selection = asked.value?.selection;
  if (selection === undefined) {
    return <p class="filter-share soft">…</p>;
  }
  const part = selection.totals[cost] ?? 0;
  const whole = selection.recording_totals[cost] ?? 0;
  return (
    <p class="filter-share" data-testid="filter-share">
      {`${costTitle(cost, isMoment(address))}: ${formatCost(cost, part)}`}
      {isMoment(address) ? '' : ` of ${formatCost(cost, whole)} pass (${formatPercent(part, whole)})`}
    </p>
  );
}

/** In a report file, where only processes and threads can be chosen. */
function ReportBar(): JSX.Element {
  const address = useAddress();
  return (
    <section class="filter" aria-label="Filter">
      <ReportNote />
      <WhoPicker address={address} />
      <button type="button" disabled={!isFiltered(address)} onClick={resetFilter}>
        Reset
      </button>
      <Chips address={address} />
      {isFiltered(address) ? <Share address={address} /> : null}
    </section>
  );
}

export function FilterBar(): JSX.Element {
  return inReport() ? <ReportBar /> : <FilterForm />;
}

function FilterForm(): JSX.Element {
  const address = useAddress();
  const [kind, setKind] = useState<Kind>('function');
  const [text, setText] = useState('');
  const [isRegex, setIsRegex] = useState(false);
  const add = (event: Event): void => {
    event.preventDefault();
    if (text !== '') {
      go({ [isRegex ? `${kind}_regex` : kind]: text, zoom: '' });
      setText('');
    }
  };
  return (
    <section class="filter" aria-label="Filter">
      <form class="filter-form" onSubmit={add}>
        <label class="visually-hidden" for="filter-kind">
          What to filter by
        </label>
        <select id="filter-kind" value={kind} onChange={(e) => setKind(KINDS.find((k) => k.field === e.currentTarget.value)?.field ?? 'function')}>
          {KINDS.map((k) => (
            <option key={k.field} value={k.field}>
              {k.label}
            </option>
          ))}
        </select>
        <input
          id="filter-text"
          type="text"
          aria-label="Filter text"
          placeholder={isRegex ? 'POSIX extended regular expression' : 'contains… (press / to come here)'}
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
        />
        <RegexToggle isOn={isRegex} onChange={setIsRegex} />
        <button type="submit" disabled={text === ''}>
          Filter
        </button>
        <button type="button" disabled={!isFiltered(address)} onClick={resetFilter}>
          Reset
        </button>
      </form>
      <WhoPicker address={address} />
      <Chips address={address} />
      <Share address={address} />
    </section>
  );
}
