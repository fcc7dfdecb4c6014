// The active parts of the filter, each with a button that removes it.
import type { JSX } from 'preact';
import { formatBytes, formatMs } from '../base/format';
import { rangeInForce, rangeText, type BlockRange } from '../model/block-range';
import { comparesRanges, FILTER_FIELDS, isMoment, type Address, type FilterField } from '../state/address';
import { go, resetTime, stopComparingTime } from '../state/app-state';
import { useApplied } from './filter-scope';

/** Fields whose value is shown unchanged. */
const LABELS: Readonly<Partial<Record<FilterField, string>>> = {
  function: 'function has',
  function_regex: 'function matches',
  file: 'file has',
  file_regex: 'file matches',
  module: 'module has',
  module_regex: 'module matches',
  focus: 'focus',
  ignore: 'ignore',
  show_from: 'show from',
  process: 'process',
  thread: 'thread',
};

const CLASS_SETS = [
  { value: '', label: 'allocated inside' },
  { value: 'in_out', label: 'allocated inside, live at its end' },
  { value: 'in_in', label: 'allocated and freed inside' },
  { value: 'out_in', label: 'allocated before, freed inside' },
  { value: 'out_out', label: 'allocated before, live at its end' },
  { value: 'in_in,in_out,out_in,out_out', label: 'all that lived inside' },
] as const;

function Chip(props: { readonly label: string; readonly value: string; readonly title?: string; readonly onRemove: () => void; readonly onEdit?: () => void }): JSX.Element {
  return (
    <li class="chip" title={props.title ?? ''}>
      <span class="soft">{props.label}</span>{' '}
      {props.onEdit === undefined ? (
        <span class="chip-value">{props.value}</span>
      ) : (
        <button type="button" class="link chip-value" title="Change this filter" onClick={props.onEdit}>
          {props.value}
        </button>
      )}
      <button type="button" class="chip-remove" aria-label={`remove filter: ${props.label} ${props.value}`} onClick={props.onRemove}>
        ×
      </button>
    </li>
  );
}

/** The range in force, and why it is not the one that was asked for. */
function rangeNote(shown: string, asked: string): string {
  return shown === asked ? '' : `asked for: ${asked}; the recording only tells whole steps apart`;
}

function TimeChip(props: { readonly address: Address }): JSX.Element | null {
  const { address } = props;
  const time = useApplied()?.time ?? null;
  if (address.from_ms === '' && address.to_ms === '') {
    return null;
  }
  const asked = { min: address.from_ms, max: address.to_ms };
  const textOf = ({ min, max }: BlockRange): string =>
    isMoment(address)
      ? `the heap as it stood at ${formatMs(Number(max))}`
      : `${formatMs(Number(min))} to ${max === '' ? 'the end' : formatMs(Number(max))}`;
  const text = textOf(rangeInForce(asked, time === null ? null : { min: time.from_ms, max: time.to_ms }));
  return (
    <>
      {comparesRanges(address) ? <Chip label="compared with" value={`${formatMs(Number(address.old_from_ms))} to ${formatMs(Number(address.old_to_ms))}`} onRemove={stopComparingTime} /> : null}
      <Chip label="time" value={text} title={rangeNote(text, textOf(asked))} onRemove={resetTime} />
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

/** A range of sizes or lifetimes. */
function RangeChip(props: {
  readonly label: string;
  readonly min: string;
  readonly max: string;
  readonly applied: { readonly min: number; readonly max: number } | null;
  readonly format: (value: number) => string;
  readonly onRemove: () => void;
}): JSX.Element | null {
  if (props.min === '' && props.max === '') {
    return null;
  }
  const text = rangeText(rangeInForce(props, props.applied), props.format);
  return <Chip label={props.label} value={text} title={rangeNote(text, rangeText(props, props.format))} onRemove={props.onRemove} />;
}

/** `onEdit` brings a field's value back to where it was typed; processes and threads are chosen from lists. */
export function FilterChips(props: { readonly address: Address; readonly onEdit?: (field: FilterField) => void }): JSX.Element {
  const { address, onEdit } = props;
  const applied = useApplied();
  return (
    <ul class="filter-chips" aria-label="Active filters">
      {FILTER_FIELDS.map((field) => {
        const label = LABELS[field];
        return label === undefined || address[field] === '' ? null : (
          <Chip
            key={field}
            label={label}
            value={address[field]}
            onRemove={() => go({ [field]: '', zoom: '' })}
            {...(onEdit === undefined || field === 'process' || field === 'thread' ? {} : { onEdit: () => onEdit(field) })}
          />
        );
      })}
      <RangeChip
        label="blocks of"
        min={address.size_min_bytes}
        max={address.size_max_bytes}
        applied={applied?.size_bytes ?? null}
        format={formatBytes}
        onRemove={() => go({ size_min_bytes: '', size_max_bytes: '', zoom: '' })}
      />
      <RangeChip
        label="blocks freed after"
        min={address.lifetime_min_ms}
        max={address.lifetime_max_ms}
        applied={applied?.lifetime_ms ?? null}
        format={formatMs}
        onRemove={() => go({ lifetime_min_ms: '', lifetime_max_ms: '', zoom: '' })}
      />
      <TimeChip address={address} />
    </ul>
  );
}
