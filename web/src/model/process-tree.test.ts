// The tree of processes and threads.
import { describe, expect, it } from 'vitest';
import { processTree } from './process-tree';

const NO_THREADS = { count: 0, thread_id: [], pid: [], start_ms: [], end_ms: [] };

function processes(pairs: readonly (readonly [number, number])[]): Parameters<typeof processTree>[0] {
  return {
    count: pairs.length,
    pid: pairs.map(([pid]) => pid),
    parent_pid: pairs.map(([, parent]) => parent),
    start_ms: pairs.map((_, i) => i),
    end_ms: pairs.map((_, i) => i + 10),
  };
}

describe('processTree', () => {
  it('has children below their parent, in order, and several threads below their process', () => {
    const threads = { count: 4, thread_id: [5, 2, 3, 9], pid: [2, 2, 3, 9], start_ms: [1, 2, 3, 4], end_ms: [5, 6, 7, 8] };
    const lives = processTree(processes([[1, 0], [4, 1], [2, 1], [3, 2]]), threads);
    expect(lives.map(({ kind, row, level }) => [kind, row, level])).toEqual([
      ['process', 0, 0], ['process', 1, 1], ['process', 2, 1], ['thread', 1, 2], ['thread', 0, 2], ['process', 3, 2],
    ]);
    expect(lives[4]).toMatchObject({ startMs: 1, endMs: 5 });
  });
  it('has one row for a process that executed another program, over both', () => {
    const lives = processTree({ count: 2, pid: [7, 7], parent_pid: [1, 1], start_ms: [5, 20], end_ms: [20, 90] }, NO_THREADS);
    expect(lives).toEqual([{ kind: 'process', row: 1, level: 0, startMs: 5, endMs: 90 }]);
  });
  it('has each process once, whoever its parent claims to be', () => {
    for (const pairs of [[[1, 1]], [[1, 2], [2, 1]], [[1, 0], [1, 0], [1, 0]], [[5, 77], [5, 5], [6, 5]]] as const) {
      const table = processes(pairs);
      const pids = processTree(table, NO_THREADS).map((life) => table.pid[life.row]);
      expect([...pids].sort()).toEqual([...new Set(table.pid)].sort());
    }
  });
});
