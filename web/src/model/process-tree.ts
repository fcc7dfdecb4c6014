// Processes and their threads as a tree in rows, each with its part of the run. Pure. Ids are
// hostile: a parent may be unknown, or its own child.

export interface ProcessTimes {
  readonly count: number;
  readonly pid: readonly number[];
  readonly parent_pid: readonly number[];
  readonly start_ms: readonly number[];
  readonly end_ms: readonly number[];
}

export interface ThreadTimes {
  readonly count: number;
  readonly thread_id: readonly number[];
  readonly pid: readonly number[];
  readonly start_ms: readonly number[];
  readonly end_ms: readonly number[];
}

export interface Life {
  readonly kind: 'process' | 'thread';
  /** Position in its table. */
  readonly row: number;
  readonly level: number;
  readonly startMs: number;
  readonly endMs: number;
}

function rowsBy(keys: readonly number[]): ReadonlyMap<number, readonly number[]> {
  const rows = new Map<number, number[]>();
  keys.forEach((key, row) => {
    const known = rows.get(key);
    if (known === undefined) {
      rows.set(key, [row]);
    } else {
      known.push(row);
    }
  });
  return rows;
}

/**
 * Depth first: a process, its threads if it has several, the first one and then by their start, its children. A process that executed
 * another program has several entries in the table and one row, that of the last program.
 */
export function processTree(processes: ProcessTimes, threads: ThreadTimes): readonly Life[] {
  const entries = rowsBy(processes.pid);
  const children = rowsBy(processes.parent_pid);
  const ofPid = rowsBy(threads.pid);
  const lives: Life[] = [];
  const done = new Set<number>();
  const add = (pid: number, level: number): void => {
    const own = entries.get(pid) ?? [];
    if (done.has(pid) || own.length === 0) {
      return;
    }
    done.add(pid);
    lives.push({
      kind: 'process',
      row: own.at(-1) ?? 0,
      level,
      startMs: Math.min(...own.map((row) => processes.start_ms[row] ?? 0)),
      endMs: Math.max(...own.map((row) => processes.end_ms[row] ?? 0)),
    });
    const rank = (thread: number): number => (threads.thread_id[thread] === pid ? -1 : (threads.start_ms[thread] ?? 0));
    const below = [...(ofPid.get(pid) ?? [])].sort((a, b) => rank(a) - rank(b));
    for (const thread of below.length > 1 ? below : []) {
      lives.push({ kind: 'thread', row: thread, level: level + 1, startMs: threads.start_ms[thread] ?? 0, endMs: threads.end_ms[thread] ?? 0 });
    }
    for (const child of children.get(pid) ?? []) {
      add(processes.pid[child] ?? 0, level + 1);
    }
  };
  processes.pid.forEach((pid, row) => (entries.has(processes.parent_pid[row] ?? 0) ? undefined : add(pid, 0)));
  processes.pid.forEach((pid) => add(pid, 0));
  return lives;
}
