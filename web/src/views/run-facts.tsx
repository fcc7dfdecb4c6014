// About the run and its recording: what ran, how reliable the figures are, and what was not seen.
import type { JSX } from 'preact';
import { health as healthAnswer, type Summary } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatCount, formatCountOf, formatMs, formatPercent } from '../base/format';
import { shownText } from '../base/shown-text';
import { useAsk } from '../state/hooks';
import { useMeta } from './parts/meta-context';
import { Notice } from './parts/pane';

/** The reason for a recording without a single allocation, which is rare. */
export function EmptyNotice(props: { readonly summary: Summary }): JSX.Element | null {
  const meta = useMeta();
  const { recording_totals: whole } = props.summary.selection;
  if ((whole['allocations'] ?? 0) > 0 || (whole['peak_bytes'] ?? 0) > 0) {
    return null;
  }
  return (
    <Notice>
      {meta.state === 'running'
        ? 'The program has not asked for memory yet. This page shows what it does as soon as it does.'
        : 'The program asked for no memory while it was recorded. Expected allocations? The program may be statically linked, have its own allocator, or have started another program that was not followed.'}
    </Notice>
  );
}

export function Facts(): JSX.Element {
  const meta = useMeta();
  const { run } = meta;
  const facts: readonly (readonly [string, string])[] = [
    ['Command', run.command_line === '' ? run.program : run.command_line],
    ['Started', run.start_unix_ms === 0 ? 'unknown' : new Date(run.start_unix_ms).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' })],
    ['Ran for', formatMs(meta.runtime_ms)],
    ['Ended', endText(meta.state, run.wait_status)],
    ['Host', `${run.host}, ${run.cpu_count} CPUs, ${formatBytes(run.memory_bytes)}`],
    ['System', `${run.kernel}, libc ${run.libc}`],
    ['Processes', `${formatCount(meta.processes)} with ${formatCountOf(meta.threads, 'thread')}`],
    ['Recording', `${meta.file.name}, ${formatBytes(meta.file.bytes)}, by cairn ${run.recorded_by}`],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={name === 'Command' ? 'mono' : ''}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function endText(state: string, status: number | null): string {
  if (state === 'running') {
    return 'still running: this page follows it';
  }
  if (state === 'stopped') {
    return 'recording ended while the program went on';
  }
  if (status === null) {
    return 'unknown how';
  }
  const signal = status & 0x7f;
  return signal === 0 ? `exit status ${(status >> 8) & 0xff}` : `killed by signal ${signal}`;
}

export function Health(props: { readonly summary: Summary }): JSX.Element {
  const { health } = props.summary;
  const asked = useAsk('health', {}, healthAnswer);
  const advice = asked.value?.modules;
  const rows = advice === undefined ? [] : range(advice.count).filter((row) => advice.symbol_advice[row] !== '');
  const counters = asked.value?.counters;
  const notes = counters === undefined ? [] : range(counters.count).filter((row) => at(counters.value, row) > 0);
  return (
    <section class="health">
      <h2>Data quality</h2>
      <p>
        {health.lost_events === 0 ? 'No event was lost.' : 'Events were lost, as listed here: the numbers are too low.'}
        {health.frames === 0 ? '' : ` ${formatPercent(health.frames_with_function, health.frames)} of the frames have a function name, ${formatPercent(health.frames_with_line, health.frames)} a source line.`}
      </p>
      <ul>
        {notes.map((row) => (
          <li key={row}>{`${counters?.text[row] ?? ''}: ${formatCount(at(counters?.value, row))}`}</li>
        ))}
        {rows.map((row) => (
          <li key={`m${row}`}>
            <span class="mono">{advice?.name[row]}</span>
            {`: ${advice?.symbol_advice[row] ?? ''}`}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The limits of the recording, a sentence each. */
export function Unseen(props: { readonly summary: Summary }): JSX.Element | null {
  const { unrecorded, unseen } = props.summary;
  const { programs } = unrecorded;
  const named = range(programs.count).map((row) => `${shownText(programs.program[row] || 'other programs')} (${shownText(programs.text[row] ?? '')})`);
  const blind = range(unseen.count).map((row) => `${shownText(unseen.executable[row] ?? '')}, pid ${at(unseen.pid, row)}`);
  return unrecorded.execs === 0 && unseen.count === 0 ? null : (
    <>
      {unrecorded.execs === 0 ? null : (
        <Notice>
          <span data-testid="unrecorded">{`${formatCountOf(unrecorded.execs, 'executed program is', 'executed programs are')} not recorded: ${some(named)}.`}</span>
        </Notice>
      )}
      {unseen.count === 0 ? null : (
        <Notice>
          <span data-testid="unseen">{`The heap of ${formatCountOf(unseen.count, 'process was', 'processes was')} not seen, or only in part: ${some(blind)}.`}</span>
        </Notice>
      )}
    </>
  );
}

/** The first few of a list, in one line. */
function some(items: readonly string[]): string {
  const most = 3;
  return items.length > most ? `${items.slice(0, most).join('; ')}; and ${formatCount(items.length - most)} more` : items.join('; ');
}
