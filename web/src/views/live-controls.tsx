// The controls of a recording under way: how old the page is, pause, and what grew since a mark.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { formatMs } from '../base/format';
import { setPaused, showSince } from '../state/app-state';
import { useAppState } from '../state/hooks';
import { ToggleButton } from './parts/controls';
import { useMeta } from './parts/meta-context';

/** Since when the page shows what it shows. */
function Age(): JSX.Element {
  const { updatedAt } = useAppState();
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    setNow(Date.now());
    const timer = window.setInterval(() => setNow(Date.now()), 1000);
    return () => window.clearInterval(timer);
  }, [updatedAt]);
  const seconds = Math.max(Math.round((now - updatedAt) / 1000), 0);
  return <span class="soft" data-testid="live-age">{`updated ${seconds === 0 ? 'now' : `${formatMs(seconds * 1000)} ago`}`}</span>;
}

export function LiveControls(): JSX.Element {
  const { runtime_ms } = useMeta();
  const { paused } = useAppState();
  return (
    <>
      <span class="head-live" role="status">
        {paused ? '❙❙ paused' : '● live'}
      </span>
      <Age />
      <ToggleButton isOn={paused} label="Pause" title="Keep what is shown; the recording goes on" onChange={setPaused} />
      <button
        type="button"
        title="Mark this moment, and show what is allocated from now on and still live"
        onClick={() => showSince(runtime_ms)}
      >
        Growth from now
      </button>
    </>
  );
}
