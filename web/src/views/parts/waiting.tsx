// Shown while the server works on an answer: for how long, and a button that stops it. Where there
// is no older answer to look at, its place is taken from the start.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** Shorter waits show no text. */
const PATIENCE_MS = 700;

export function Waiting(props: { readonly label: string; readonly isFirst?: boolean; readonly onCancel: () => void }): JSX.Element | null {
  const [elapsedMs, setElapsedMs] = useState(0);
  useEffect(() => {
    const start = performance.now();
    const timer = window.setInterval(() => setElapsedMs(performance.now() - start), PATIENCE_MS);
    return () => window.clearInterval(timer);
  }, []);
  if (elapsedMs < PATIENCE_MS) {
    return props.isFirst === true ? <p class="notice" role="status">{`${props.label}: one moment…`}</p> : null;
  }
  return (
    <div class="waiting" role="status" data-testid="waiting">
      <span class="waiting-line" aria-hidden="true" />
      <span>{`${props.label}: working, ${Math.floor(elapsedMs / 1000)} s…`}</span>
      <button type="button" onClick={props.onCancel}>
        Cancel
      </button>
    </div>
  );
}
