// Shown while the server works on an answer: the known progress, and a button that stops it. Where
// there is no older answer to look at, its place is taken from the start.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { work, type Work } from '../../api/answers';
import { ask } from '../../api/client';
import { inReport } from '../../api/report-file';
import { progressText } from '../../model/progress';

/** Shorter waits show no text. */
const PATIENCE_MS = 700;

export function Waiting(props: { readonly label: string; readonly target: string; readonly isFirst?: boolean; readonly onCancel: () => void }): JSX.Element | null {
  const [elapsedMs, setElapsedMs] = useState(0);
  const [told, setTold] = useState<Work | null>(null);
  useEffect(() => {
    const start = performance.now();
    const abort = new AbortController();
    const look = async (): Promise<void> => {
      setElapsedMs(performance.now() - start);
      if (!inReport()) {
        const result = await ask('work', {}, work, abort.signal);
        setTold(result.ok ? result.value : null);
      }
    };
    const timer = window.setInterval(() => void look(), PATIENCE_MS);
    return () => {
      window.clearInterval(timer);
      abort.abort();
    };
  }, []);
  if (elapsedMs < PATIENCE_MS) {
    return props.isFirst === true ? <p class="notice" role="status">{`${props.label}: one moment…`}</p> : null;
  }
  return (
    <div class="waiting" role="status" data-testid="waiting">
      <span class="waiting-line" aria-hidden="true" />
      <span>{`${props.label}: ${progressText(told?.answers ?? [], props.target)}, ${Math.floor(elapsedMs / 1000)} s…`}</span>
      <button type="button" onClick={props.onCancel}>
        Cancel
      </button>
    </div>
  );
}
