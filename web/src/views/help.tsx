// The list of keys.
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { setHelp } from '../state/app-state';
import './help.css';

const KEYS: readonly (readonly [string, string])[] = [
  ['1 … 9, 0', 'the first ten views, in the order of the tabs'],
  ['[ ]', 'the view before, the view after'],
  ['/', 'type a filter; Enter applies it, Esc leaves the field'],
  ['x', 'reset the filter'],
  ['Alt ←, Alt →', 'back and forward: views, filters and zooms'],
  ['↑ ↓ Home End', 'in tables: the row before, after, first, last'],
  ['→ ←', 'in trees: open, close or go to the caller'],
  ['Enter', 'in tables: open the function in Caller / Callee; in the flame graph: zoom'],
  ['c', 'in tables: copy the selected row'],
  ['h', 'in trees: open the hot path, from the selected row if there is one, and select its end'],
  ['u, Shift+click', 'in trees (u) and the flame graph: unfold the wrapper frames that a row hides, or fold them again'],
  ['o', 'in the flame graph: open the function in Caller / Callee'],
  ['right click, Shift+F10', 'in trees, tables of functions and the flame graph: focus, hide, merge, source, editor, copy'],
  ['Enter, Shift+Enter', 'in the field below a table: the next row with the text, the one before'],
  ['Esc', 'in the flame graph: zoom out; here: close'],
  ['?', 'this'],
];

export function Help(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={() => setHelp(false)}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}
