// Small controls that several views use.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { costMeaning, costTitle, type CostKey } from '../../model/cost';
import { go } from '../../state/app-state';
import { useAddress } from '../../state/hooks';
import { useLiveWhen } from './live-when';
import { useKnows } from './unknown-costs';

export function CostSelect(props: {
  readonly value: CostKey;
  readonly costs: readonly CostKey[];
  readonly onChange: (cost: CostKey) => void;
}): JSX.Element {
  const knows = useKnows();
  const when = useLiveWhen();
  return (
    <label class="toolbar-label">
      Cost
      <select value={props.value} title={costMeaning(props.value, when)} onChange={(e) => props.onChange(e.currentTarget.value)}>
        {props.costs.filter(knows).map((cost) => (
          <option key={cost} value={cost}>
            {costTitle(cost, when)}
          </option>
        ))}
      </select>
    </label>
  );
}

export function ToggleButton(props: {
  readonly isOn: boolean;
  readonly label: string;
  readonly title: string;
  readonly onChange: (isOn: boolean) => void;
}): JSX.Element {
  return (
    <button type="button" aria-pressed={props.isOn} title={props.title} onClick={() => props.onChange(!props.isOn)}>
      {props.label}
    </button>
  );
}

/** Wrapper frames: folded, unless the address says otherwise. */
export function WrapperToggle(): JSX.Element {
  const isOn = useAddress().wrappers === '1';
  return (
    <ToggleButton
      isOn={isOn}
      label="Wrappers"
      title="Show every frame: also those that only pass an allocation on, such as operator new, std:: and zmalloc, and those outside of main"
      onChange={(on) => go({ wrappers: on ? '1' : '', zoom: '' })}
    />
  );
}

export function RegexToggle(props: { readonly isOn: boolean; readonly onChange: (isOn: boolean) => void }): JSX.Element {
  return (
    <button
      type="button"
      class="mono"
      aria-label="Regular expression"
      aria-pressed={props.isOn}
      title="Regular expression (PCRE2); case matters"
      onClick={() => props.onChange(!props.isOn)}
    >
      .*
    </button>
  );
}

export function Choice<T extends string>(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly { readonly value: T; readonly label: string; readonly help?: string }[];
  readonly onChange: (value: T) => void;
}): JSX.Element {
  return (
    <span class="choice" role="group" aria-label={props.label}>
      {props.options.map((option) => (
        <button key={option.value} type="button" title={option.help ?? ''} aria-pressed={option.value === props.value} onClick={() => props.onChange(option.value)}>
          {option.label}
        </button>
      ))}
    </span>
  );
}

const TYPING_PAUSE_MS = 200;

/**
 * A text field whose value is applied after a pause; follows `value` when that changes elsewhere.
 */
export function useDebounced(value: string, act: (text: string) => void): [string, (text: string) => void] {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => setText(value), [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return [
    text,
    (next) => {
      setText(next);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => latest.current(next), TYPING_PAUSE_MS);
    },
  ];
}
