// A part of the page that waits for an answer: shows that it waits, why it failed, or the answer.
import type { ComponentChildren, JSX } from 'preact';
import type { AppError } from '../../base/result';
import type { Asked } from '../../state/hooks';
import { Waiting } from './waiting';
import './pane.css';

export function Notice(props: { readonly children: ComponentChildren; readonly bad?: boolean }): JSX.Element {
  return (
    <p class={props.bad === true ? 'notice notice-bad' : 'notice'} role={props.bad === true ? 'alert' : 'note'}>
      {props.children}
    </p>
  );
}

/**
 * The reason for a missing answer, and a retry if the reader stopped it or the server did not
 * answer.
 */
export function Failure(props: { readonly label: string; readonly error: AppError; readonly onAgain: () => void }): JSX.Element {
  const { error } = props;
  return (
    <Notice bad={error.code !== 'cancelled'}>
      {`${props.label}: ${error.message}${/[.?!]$/.test(error.message) ? '' : '.'} `}
      {error.code === 'invalid' ? null : (
        <button type="button" onClick={props.onAgain}>
          Ask again
        </button>
      )}
    </Notice>
  );
}

export function Pane<T>(props: {
  readonly asked: Asked<T>;
  readonly label: string;
  readonly children: (value: T) => ComponentChildren;
}): JSX.Element {
  const { asked, label } = props;
  if (asked.error !== null) {
    return <Failure label={label} error={asked.error} onAgain={asked.again} />;
  }
  if (asked.value === null) {
    return asked.busy ? (
      <Waiting label={label} isFirst onCancel={asked.cancel} />
    ) : (
      <p class="notice" role="status">{`${label}: nothing asked.`}</p>
    );
  }
  return (
    <div class={asked.busy ? 'pane pane-busy' : 'pane'} aria-busy={asked.busy}>
      {asked.busy ? <Waiting label={label} onCancel={asked.cancel} /> : null}
      {props.children(asked.value)}
    </div>
  );
}
