// The filter of all views: its state, the share that passes, and its editor.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { inReport } from '../api/report-file';
import { formatPercent } from '../base/format';
import { LIFETIME_RANGE, parseRange, SIZE_RANGE, type RangeKind } from '../model/block-range';
import { costTitle, formatCost } from '../model/cost';
import { isFiltered, isMoment, type Address, type FilterField } from '../state/address';
import { go, resetFilter } from '../state/app-state';
import { useAddress } from '../state/hooks';
import { FilterChips } from './filter-chips';
import { usePassed } from './filter-scope';
import { RegexToggle } from './parts/controls';
import { useLiveWhen } from './parts/live-when';
import { useCapability } from './parts/meta-context';
import { useTells } from './parts/unknown-costs';
import { ReportNote } from './report-note';
import { WhoPicker } from './who-picker';
import './filter-bar.css';

interface Kind {
  readonly field: string;
  readonly label: string;
  /** For blocks, by a range; null: for stacks, by a text. */
  readonly range: RangeKind | null;
  /** The text is a regular expression for the function, file or module of a frame. */
  readonly isFrame?: boolean;
}

const FUNCTION: Kind = { field: 'function', label: 'Function', range: null };
const KINDS: readonly Kind[] = [
  FUNCTION,
  { field: 'file', label: 'File', range: null },
  { field: 'module', label: 'Module', range: null },
  { field: 'focus', label: 'Focus', range: null, isFrame: true },
  { field: 'ignore', label: 'Ignore', range: null, isFrame: true },
  { field: 'show_from', label: 'Show from', range: null, isFrame: true },
  { field: 'size', label: 'Size', range: SIZE_RANGE },
  { field: 'lifetime', label: 'Lifetime', range: LIFETIME_RANGE },
];

/** The address's value for a text of this kind; null if the text is invalid. */
function patchFor(kind: Kind, text: string, isRegex: boolean): Partial<Address> | null {
  if (kind.range === null) {
    return { [isRegex && kind.isFrame !== true ? `${kind.field}_regex` : kind.field]: text };
  }
  const range = parseRange(text, kind.range);
  if (range === null) {
    return null;
  }
  return kind.field === 'size'
    ? { size_min_bytes: range.min, size_max_bytes: range.max }
    : { lifetime_min_ms: range.min, lifetime_max_ms: range.max };
}

/** The share of the recording that passes. */
function Share(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const asked = usePassed();
  const tells = useTells();
  const when = useLiveWhen();
  const cost = isMoment(address) && address.cost === 'peak_bytes' ? 'live_bytes' : address.cost;
  if (asked === null) {
    return <p class="filter-share soft">Whole recording</p>;
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
  const title = costTitle(cost, when);
  if (!tells(cost)) {
    return <p class="filter-share" data-testid="filter-share">{`${title}: not known under this filter`}</p>;
  }
  const part = selection.totals[cost] ?? 0;
  const whole = selection.recording_totals[cost] ?? 0;
  return (
    <p class="filter-share" data-testid="filter-share">
      {`${title}: ${formatCost(cost, part)}`}
      {isMoment(address) ? '' : ` of ${formatCost(cost, whole)} (${formatPercent(part, whole)})`}
    </p>
  );
}

/** For a report file, which can only filter by process and thread. */
function ReportBar(): JSX.Element {
  const address = useAddress();
  return (
    <section class="filter" aria-label="Filter">
      <ReportNote />
      <WhoPicker address={address} />
      <button type="button" disabled={!isFiltered(address)} onClick={resetFilter}>
        Reset
      </button>
      <FilterChips address={address} />
      {isFiltered(address) ? <Share address={address} /> : null}
    </section>
  );
}

/** A folded filter stays in the page, hidden: what is typed in it stays, too. */
export function FilterBar(props: { readonly isShown: boolean }): JSX.Element {
  return inReport() ? <ReportBar /> : <FilterForm isShown={props.isShown} />;
}

function FilterForm(props: { readonly isShown: boolean }): JSX.Element {
  const address = useAddress();
  const hasSizes = useCapability('sizes');
  const hasLifetimes = useCapability('lifetimes');
  const [kind, setKind] = useState(FUNCTION);
  const [text, setText] = useState('');
  const [isRegex, setIsRegex] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const patch = text === '' ? null : patchFor(kind, text, isRegex);
  const isWrong = text !== '' && patch === null;
  const add = (event: Event): void => {
    event.preventDefault();
    if (patch !== null) {
      go({ ...patch, zoom: '' });
      setText('');
    }
  };
  const edit = (field: FilterField): void => {
    setKind(KINDS.find((candidate) => candidate.field === field.replace(/_regex$/, '')) ?? FUNCTION);
    setIsRegex(field.endsWith('_regex'));
    setText(address[field]);
    input.current?.focus();
  };
  const isThere = (candidate: Kind): boolean => (candidate.field !== 'size' || hasSizes) && (candidate.field !== 'lifetime' || hasLifetimes);
  return (
    <section class="filter" aria-label="Filter" hidden={!props.isShown}>
      <form class="filter-form" onSubmit={add}>
        <label class="visually-hidden" for="filter-kind">
          What to filter by
        </label>
        <select id="filter-kind" value={kind.field} onChange={(e) => setKind(KINDS.find((k) => k.field === e.currentTarget.value) ?? FUNCTION)}>
          {KINDS.filter(isThere).map((k) => (
            <option key={k.field} value={k.field}>
              {k.label}
            </option>
          ))}
        </select>
        <input
          id="filter-text"
          ref={input}
          type="text"
          aria-label="Filter text"
          aria-invalid={isWrong}
          title={isWrong ? `A range such as ${kind.range?.example ?? ''}` : ''}
          placeholder={kind.range !== null ? kind.range.example : isRegex || kind.isFrame === true ? 'regular expression (PCRE2)' : 'contains… (press / to come here)'}
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => (e.key === 'Escape' ? e.currentTarget.blur() : undefined)}
        />
        {kind.range === null && kind.isFrame !== true ? <RegexToggle isOn={isRegex} onChange={setIsRegex} /> : null}
        <button type="submit" disabled={patch === null}>
          Filter
        </button>
        <button type="button" disabled={!isFiltered(address)} onClick={resetFilter}>
          Reset
        </button>
      </form>
      <WhoPicker address={address} />
      <FilterChips address={address} onEdit={edit} />
      <Share address={address} />
    </section>
  );
}
