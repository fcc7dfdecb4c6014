// Processes, threads and modules with their costs; one can be added to the filter.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { modules as modulesAnswer, processes as processesAnswer, threads as threadsAnswer } from '../api/answers';
import type { Decode, Decoded } from '../api/decode';
import { at } from '../base/columns';
import { formatBytes, formatMs } from '../base/format';
import { baseName } from '../model/code';
import { columnCosts, TABLE_COSTS } from '../model/cost';
import { comparesRanges, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { groupParams } from '../state/questions';
import { Lives } from './lives';
import { GroupTable, groupText, type GroupSide, type TextColumn } from './parts/group-table';
import { Notice, Pane } from './parts/pane';
import './threads.css';

/** The parts in which the three tables differ. */
interface Kind<T> {
  readonly route: string;
  readonly label: string;
  readonly decode: Decode<T>;
  readonly texts: readonly TextColumn[];
  readonly side: (answer: T) => GroupSide;
  readonly only: (answer: T, row: number) => Partial<Address>;
}

const THREADS: Kind<Decoded<typeof threadsAnswer>> = {
  route: 'threads',
  label: 'Threads',
  decode: threadsAnswer,
  texts: [
    { title: 'Thread', widthPx: 130, narrowPx: 98, heads: ['Thread', 'Threads of this name'] },
    { title: 'Id', widthPx: 76, narrowPx: 60, spare: 1, numeric: true, heads: ['Id'] },
    { title: 'Lived', widthPx: 184, narrowPx: 132, spare: 2, heads: ['Started (ms)', 'Ended (ms)'] },
  ],
  side: ({ threads, selection }) => ({
    count: threads.count,
    costs: threads.costs,
    errors: threads.errors,
    totals: selection.totals,
    id: (row) => String(at(threads.thread_id, row)),
    key: (row) => `${threads.name[row] ?? ''}${at(threads.thread_id, row) === at(threads.pid, row) ? ' (first)' : ''}`,
    texts: [
      {
        text: (row) => `${threads.name[row] ?? ''}${at(threads.merged_count, row) > 1 ? ` (${at(threads.merged_count, row)} of this name)` : ''}`,
        values: (row) => [threads.name[row] ?? '', at(threads.merged_count, row)],
      },
      groupText((row) => String(at(threads.thread_id, row))),
      {
        text: (row) => `${formatMs(at(threads.start_ms, row))} to ${formatMs(at(threads.end_ms, row))}`,
        values: (row) => [at(threads.start_ms, row), at(threads.end_ms, row)],
      },
    ],
  }),
  only: ({ threads }, row) => ({ thread: String(at(threads.thread_id, row)) }),
};

const PROCESSES: Kind<Decoded<typeof processesAnswer>> = {
  route: 'processes',
  label: 'Processes',
  decode: processesAnswer,
  texts: [
    { title: 'Process', widthPx: 130, narrowPx: 98, heads: ['Process'] },
    { title: 'Id', widthPx: 76, narrowPx: 60, spare: 2, numeric: true, heads: ['Id'] },
    { title: 'Peak RSS', widthPx: 110, narrowPx: 90, spare: 1, numeric: true, heads: ['Peak RSS (bytes)'] },
  ],
  side: ({ processes, selection }) => ({
    count: processes.count,
    costs: processes.costs,
    errors: processes.errors,
    totals: selection.totals,
    id: (row) => String(at(processes.pid, row)),
    key: (row) => baseName(processes.executable[row] ?? ''),
    texts: [
      groupText((row) => processes.command_line[row] || baseName(processes.executable[row] ?? '')),
      groupText((row) => String(at(processes.pid, row))),
      {
        text: (row) => (at(processes.peak_rss_bytes, row) === 0 ? 'not sampled' : formatBytes(at(processes.peak_rss_bytes, row))),
        values: (row) => [at(processes.peak_rss_bytes, row) === 0 ? 'not sampled' : at(processes.peak_rss_bytes, row)],
      },
    ],
  }),
  only: ({ processes }, row) => ({ process: String(at(processes.pid, row)) }),
};

const MODULES: Kind<Decoded<typeof modulesAnswer>> = {
  route: 'modules',
  label: 'Modules',
  decode: modulesAnswer,
  texts: [{ title: 'Module', help: 'the module of the call site', widthPx: 300, narrowPx: 100, heads: ['Module'] }],
  side: ({ modules, selection }) => ({
    count: modules.count,
    costs: modules.costs,
    errors: modules.errors,
    totals: selection.totals,
    id: () => '',
    key: (row) => modules.name[row] ?? '',
    texts: [groupText((row) => modules.path[row] ?? '')],
  }),
  only: ({ modules }, row) => ({ module: modules.path[row] ?? '' }),
};

function Groups<T>(props: { readonly kind: Kind<T>; readonly address: Address }): JSX.Element {
  const { kind, address } = props;
  const params = groupParams(address);
  const asked = useAsk(kind.route, params, kind.decode);
  const isDiff = address.diff === '1';
  const before = useAsk(isDiff ? kind.route : null, comparesRanges(address) ? { ...params, from_ms: address.old_from_ms, to_ms: address.old_to_ms } : { ...params, recording: 'old' }, kind.decode);
  const now = useMemo(() => (asked.value === null ? null : kind.side(asked.value)), [asked.value]);
  const old = useMemo(() => (before.value === null || !isDiff ? null : kind.side(before.value)), [before.value, isDiff]);
  return (
    <>
      <h2>{kind.label}</h2>
      {before.error === null ? null : <Notice bad>{`The recording compared with: ${before.error.message}.`}</Notice>}
      <Pane asked={asked} label={kind.label}>
        {(answer) => (
          <GroupTable
            label={kind.label}
            texts={kind.texts}
            costs={isDiff ? columnCosts(address.cost, true) : TABLE_COSTS}
            sortBy={address.cost}
            now={now ?? kind.side(answer)}
            old={old}
            onOnly={(row) => go({ ...kind.only(answer, row), zoom: '' })}
          />
        )}
      </Pane>
    </>
  );
}

export function ThreadsView(): JSX.Element {
  const address = useAddress();
  return (
    <div class="view threads">
      {address.diff === '1' ? <p class="soft">Processes are matched by their program, threads by their name (the first of a process with a first one), modules by their file's name.</p> : null}
      <Lives />
      <Groups kind={PROCESSES} address={address} />
      <Groups kind={THREADS} address={address} />
      <Groups kind={MODULES} address={address} />
    </div>
  );
}
