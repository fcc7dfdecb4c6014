// Loads a call tree in parts: the first level at once, the children of a node when it is opened.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, query } from '../api/client';
import { tree as treeAnswer, type Selection, type Tree } from '../api/answers';
import type { AppError } from '../base/result';
import { functionName } from '../model/code';
import { EMPTY_TREE, hangIn, setOpen, visibleRows, type PartialTree, type TreeNode } from '../model/tree-rows';
import { levelParams } from '../state/questions';
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

function pathBelow(path: string, node: TreeNode | undefined): string {
  return `${path}\n${node?.name.full ?? ''}`;
}

/** The open rows of a tree as the names from the root, and the row that the reader unfolded just now. */
function openPaths(tree: PartialTree, unfolded: string): ReadonlySet<string> {
  const paths = new Map<number, string>([[ROOT, '']]);
  for (const { id } of visibleRows(tree)) {
    const node = tree.nodes.get(id);
    paths.set(id, pathBelow(paths.get(node?.parent ?? ROOT) ?? '', node));
  }
  const isNew = (id: number): boolean => unfolded !== '' && String(tree.nodes.get(id)?.fold.path) === unfolded;
  return new Set([...paths].filter(([id]) => tree.open.has(id) || isNew(id)).map(([, path]) => path));
}

interface Loading {
  readonly question: string;
  readonly tree: PartialTree;
  readonly selection: Selection | null;
  readonly error: AppError | null;
}

class TreeLoader {
  private readonly abort = new AbortController();
  private state: Loading;

  constructor(
    private readonly params: Readonly<Record<string, string>>,
    question: string,
    private readonly show: (state: Loading) => void,
  ) {
    this.state = { question, tree: EMPTY_TREE, selection: null, error: null };
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
    const asked = levelParams(this.params, id === ROOT ? '' : String(id));
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

  /** Open what was open in an earlier tree, by the names from the root, and what `unfolded` shows. */
  async reopen(earlier: PartialTree, unfolded: string): Promise<void> {
    const last = unfolded.slice(unfolded.lastIndexOf(',') + 1);
    const paths = openPaths(earlier, last);
    const queue: { readonly id: number; readonly path: string }[] = [{ id: ROOT, path: '' }];
    for (let step = 0; step < MAX_HOT_STEPS; step++) {
      const next = queue.shift();
      if (next === undefined || !(await this.load(next.id))) {
        break;
      }
      if (next.id !== ROOT) {
        this.set({ tree: setOpen(this.state.tree, next.id, true) });
      }
      for (const id of this.state.tree.children.get(next.id) ?? []) {
        const child = this.state.tree.nodes.get(id);
        const path = pathBelow(next.path, child);
        const isNew = child !== undefined && child.fold.unfoldedBy > 0 && String(child.fold.unfoldedBy) === last;
        if (child !== undefined && child.childCount > 0 && (isNew || paths.has(path))) {
          queue.push({ id, path });
        }
      }
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
  const [state, setState] = useState<Loading>({ question: '', tree: EMPTY_TREE, selection: null, error: null });
  const loader = useRef<TreeLoader | null>(null);
  /** What the shown tree was asked for, but for what is unfolded: its open rows are kept. */
  const shown = useRef('');
  const [busy, setBusy] = useState(true);
  useEffect(() => {
    const own = new TreeLoader(params, question, setState);
    loader.current = own;
    setBusy(true);
    const asked = query({ ...params, unfold: '' });
    const opened = shown.current === asked ? own.reopen(state.tree, params['unfold'] ?? '') : params['direction'] === 'top_down' ? own.openTrunk(params['sort'] ?? '') : own.load(ROOT);
    shown.current = asked;
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
