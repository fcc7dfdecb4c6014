// Loads a call tree in parts: the first level at once, the children of a node when it is opened.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, query, targetOf } from '../api/client';
import { tree as treeAnswer, type Selection, type Tree } from '../api/answers';
import type { AppError } from '../base/result';
import { functionName } from '../model/code';
import { EMPTY_TREE, hangIn, setOpen, type PartialTree } from '../model/tree-rows';
import { noteGeneration } from '../state/app-state';
import { CANCELLED, countWaiting, useAppState } from '../state/hooks';

export interface LoadedTree {
  readonly tree: PartialTree;
  readonly selection: Selection | null;
  readonly error: AppError | null;
  readonly busy: boolean;
  readonly toggle: (id: number, open: boolean) => void;
  /**
   * Open the heaviest child of the heaviest child, down to where it branches; among all nodes, open
   * the heaviest in any case. Returns the last of them, or 0 without one.
   */
  readonly openHotPath: (id: number, cost: string) => Promise<number>;
  readonly question: string;
  /** The latest query to the server. */
  readonly target: string;
  readonly cancel: () => void;
  readonly again: () => void;
}

/** A path is hot while its heaviest child has this share of it. */
const HOT_SHARE = 0.5;
/** The trunk of a top-down tree ends where less than this is below one child. */
const TRUNK_SHARE = 0.9;
const MAX_HOT_STEPS = 200;
/** The node whose children are the rows of the first level. */
const ROOT = 0;

function hang(tree: PartialTree, answer: Tree): PartialTree {
  return hangIn(
    tree,
    answer.nodes,
    (row) => functionName(answer.code, answer.nodes.function[row]),
    (row) => row === 0,
  );
}

interface Loading {
  readonly question: string;
  readonly tree: PartialTree;
  readonly selection: Selection | null;
  readonly error: AppError | null;
  readonly target: string;
}

class TreeLoader {
  private readonly abort = new AbortController();
  private state: Loading;

  constructor(
    private readonly params: Readonly<Record<string, string>>,
    question: string,
    private readonly show: (state: Loading) => void,
  ) {
    this.state = { question, tree: EMPTY_TREE, selection: null, error: null, target: '' };
  }

  stop(): void {
    this.abort.abort();
  }

  cancel(): void {
    this.set({ error: CANCELLED });
    this.abort.abort();
  }

  private set(change: Partial<Loading>): void {
    if (!this.abort.signal.aborted) {
      this.state = { ...this.state, ...change };
      this.show(this.state);
    }
  }

  /** True when the children of `id` are loaded. */
  async load(id: number): Promise<boolean> {
    if (this.state.tree.children.has(id)) {
      return true;
    }
    const asked = { ...this.params, root: id === ROOT ? '' : String(id), depth: '1', limit: '0' };
    this.set({ target: targetOf('tree', asked) });
    countWaiting(1);
    const result = await ask('tree', asked, treeAnswer, this.abort.signal);
    countWaiting(-1);
    if (this.abort.signal.aborted) {
      return false;
    }
    noteGeneration(result.generation);
    if (!result.ok) {
      this.set({ error: result.error });
      return false;
    }
    this.set({ tree: hang(this.state.tree, result.value), selection: result.value.selection });
    return true;
  }

  /** Open the first level, and from its heaviest row inwards as long as nearly all is below one. */
  async openTrunk(cost: string): Promise<void> {
    let id = ROOT;
    for (let step = 0; step < MAX_HOT_STEPS && (await this.load(id)); step++) {
      const { tree } = this.state;
      const child = tree.nodes.get(tree.children.get(id)?.[0] ?? -1);
      const total = tree.nodes.get(id)?.total[cost] ?? this.state.selection?.totals[cost] ?? 0;
      if (child === undefined || child.childCount === 0 || total === 0 || (child.total[cost] ?? 0) < total * TRUNK_SHARE || !(await this.load(child.id))) {
        break;
      }
      this.set({ tree: setOpen(this.state.tree, child.id, true) });
      id = child.id;
    }
  }

  async toggle(id: number, open: boolean): Promise<void> {
    if (!open || (await this.load(id))) {
      this.set({ tree: setOpen(this.state.tree, id, open) });
    }
  }

  async openHotPath(from: number, cost: string): Promise<number> {
    let id = from;
    for (let step = 0; step < MAX_HOT_STEPS; step++) {
      await this.toggle(id, true);
      const { tree } = this.state;
      const heaviest = tree.children.get(id)?.[0];
      const total = tree.nodes.get(id)?.total[cost] ?? this.state.selection?.totals[cost] ?? 0;
      const next = heaviest === undefined ? undefined : tree.nodes.get(heaviest);
      const isHot = id === ROOT || (next?.total[cost] ?? 0) >= total * HOT_SHARE;
      if (next === undefined || !isHot || total === 0) {
        break;
      }
      id = next.id;
    }
    return this.abort.signal.aborted ? ROOT : id;
  }
}

export function useTree(params: Readonly<Record<string, string>>): LoadedTree {
  const { generation } = useAppState();
  const [attempt, setAttempt] = useState(0);
  const question = `${query(params)}#${generation}.${attempt}`;
  const [state, setState] = useState<Loading>({ question: '', tree: EMPTY_TREE, selection: null, error: null, target: '' });
  const loader = useRef<TreeLoader | null>(null);
  const [busy, setBusy] = useState(true);
  useEffect(() => {
    const own = new TreeLoader(params, question, setState);
    loader.current = own;
    setBusy(true);
    const opened = params['direction'] === 'top_down' ? own.openTrunk(params['sort'] ?? '') : own.load(ROOT);
    void opened.then(() => {
      if (loader.current === own) {
        setBusy(false);
      }
    });
    return () => own.stop();
  }, [question]);
  return useMemo(
    () => ({
      ...state,
      busy,
      toggle: (id, open) => void loader.current?.toggle(id, open),
      openHotPath: (id, cost) => loader.current?.openHotPath(id, cost) ?? Promise.resolve(ROOT),
      cancel: () => {
        loader.current?.cancel();
        setBusy(false);
      },
      again: () => setAttempt(attempt + 1),
    }),
    [state, busy, attempt],
  );
}
