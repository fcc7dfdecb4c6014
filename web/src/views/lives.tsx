// Processes and threads as a tree, each with a bar of its life over the run. A click on the bar
// filters all views to that time, one on the name to that process or thread.
import type { JSX } from 'preact';
import { processes as processesAnswer, threads as threadsAnswer } from '../api/answers';
import type { Decoded } from '../api/decode';
import { inReport } from '../api/report-file';
import { at } from '../base/columns';
import { formatBytes, formatCount, formatMs } from '../base/format';
import { baseName } from '../model/code';
import { processTree, type Life } from '../model/process-tree';
import { filterTime, go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { livesParams } from '../state/questions';
import { useMeta } from './parts/meta-context';
import { Pane } from './parts/pane';
import './lives.css';

const MOST = 100;

interface Answers {
  readonly processes: Decoded<typeof processesAnswer>['processes'];
  readonly threads: Decoded<typeof threadsAnswer>['threads'];
}

function labelOf({ processes, threads }: Answers, life: Life): string {
  return life.kind === 'thread'
    ? `${threads.name[life.row] || 'thread'} (${at(threads.thread_id, life.row)})`
    : `${baseName(processes.executable[life.row] ?? '') || processes.command_line[life.row] || 'process'} (${at(processes.pid, life.row)})`;
}

function LifeRow(props: { readonly answers: Answers; readonly life: Life; readonly runMs: number }): JSX.Element {
  const { answers, life, runMs } = props;
  const { processes, threads } = answers;
  const end = Math.max(life.endMs, life.startMs);
  const share = (ms: number): number => Math.min((ms / runMs) * 100, 100);
  const table = life.kind === 'thread' ? threads : processes;
  const own = life.kind === 'thread' ? '' : `, own peak ${formatBytes(at(processes.process_peak_bytes, life.row))}`;
  const text = `${formatMs(life.startMs)} to ${formatMs(end)}; ${formatBytes(at(table.costs['peak_bytes'], life.row))} at the peak${own}`;
  const only = life.kind === 'thread' ? { thread: String(at(threads.thread_id, life.row)) } : { process: String(at(processes.pid, life.row)) };
  return (
    <li class={`life life-${life.kind}`}>
      <span class="life-name" style={{ paddingLeft: `${life.level * 14}px` }}>
        <button type="button" class="link" title={`${labelOf(answers, life)}: show only this, in all views`} onClick={() => go({ ...only, zoom: '' })}>
          {labelOf(answers, life)}
        </button>
      </span>
      <span class="life-track">
        <button
          type="button"
          class="life-bar"
          aria-label={`${labelOf(answers, life)}: ${text}`}
          title={text}
          disabled={inReport()}
          style={{ left: `${share(life.startMs).toFixed(2)}%`, width: `${Math.max(share(end) - share(life.startMs), 0.2).toFixed(2)}%` }}
          onClick={() => filterTime(life.startMs, end)}
        />
      </span>
      <span class="life-peak">{formatBytes(at(table.costs['peak_bytes'], life.row))}</span>
    </li>
  );
}

export function Lives(): JSX.Element {
  const params = livesParams(useAddress());
  const meta = useMeta();
  const processes = useAsk('processes', params, processesAnswer);
  const threads = useAsk('threads', params, threadsAnswer);
  return (
    <section class="lives" aria-label="Lives of processes and threads">
      <h2 class="lives-head">
        {`Processes and threads over the run of ${formatMs(meta.runtime_ms)}`}
        <span class="soft">held at the peak</span>
      </h2>
      <Pane asked={processes} label="Lives">
        {(answer) => {
          const answers = { processes: answer.processes, threads: threads.value?.threads ?? { count: 0, thread_id: [], pid: [], name: [], merged_count: [], start_ms: [], end_ms: [], costs: {}, errors: null } };
          const lives = processTree(answers.processes, answers.threads);
          return (
            <>
              <ol class="lives-rows" tabIndex={0} aria-label="Processes and threads, with the bytes at the peak">
                {lives.slice(0, MOST).map((life) => (
                  <LifeRow key={`${life.kind}${life.row}`} answers={answers} life={life} runMs={Math.max(meta.runtime_ms, 1)} />
                ))}
              </ol>
              {lives.length > MOST ? <p class="soft">{`and ${formatCount(lives.length - MOST)} more, in the tables`}</p> : null}
            </>
          );
        }}
      </Pane>
    </section>
  );
}
