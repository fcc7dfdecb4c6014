// A call tree with only its opened parts loaded: nodes by id, added as they come, and the visible
// rows. Pure: every change makes a new tree. Ids are the server's; 0 is the root, which has no row.
import type { TreeNodes } from './tree';
import type { CodeName } from './code';
import { foldOf, type Fold } from './folded-frames';

export interface TreeNode {
  readonly id: number;
  readonly parent: number;
  readonly name: CodeName;
  readonly isInlined: boolean;
  readonly childCount: number;
  readonly fold: Fold;
  readonly total: Readonly<Record<string, number>>;
  readonly self: Readonly<Record<string, number>>;
  readonly old: Readonly<Record<string, number>> | null;
  readonly errors: Readonly<Record<string, number>> | null;
  readonly oldErrors: Readonly<Record<string, number>> | null;
}

export interface PartialTree {
  readonly nodes: ReadonlyMap<number, TreeNode>;
  /** Children by parent; the children of a parent without an entry were not requested. */
  readonly children: ReadonlyMap<number, readonly number[]>;
  readonly open: ReadonlySet<number>;
}

export const EMPTY_TREE: PartialTree = { nodes: new Map(), children: new Map(), open: new Set([0]) };

function rowOf(columns: Readonly<Record<string, readonly number[]>>, row: number): Record<string, number> {
  return Object.fromEntries(Object.entries(columns).map(([key, column]) => [key, column[row] ?? 0]));
}

/**
 * Add the answer: every node of `nodes` and, below each node with children, its children in their
 * order.
 */
export function hangIn(
  tree: PartialTree,
  nodes: TreeNodes,
  name: (row: number) => CodeName,
  isWholeBelow: (row: number) => boolean,
): PartialTree {
  const known = new Map(tree.nodes);
  const children = new Map(tree.children);
  const fresh = new Map<number, number[]>();
  for (let row = 0; row < nodes.count; row++) {
    const id = nodes.id[row] ?? 0;
    const parentRow = nodes.parent[row] ?? null;
    const parent = parentRow === null ? (tree.nodes.get(id)?.parent ?? -1) : (nodes.id[parentRow] ?? 0);
    known.set(id, {
      id,
      parent,
      name: name(row),
      isInlined: nodes.inlined[row] === 1,
      childCount: nodes.child_count[row] ?? 0,
      fold: foldOf(nodes, row),
      total: rowOf(nodes.total, row),
      self: rowOf(nodes.self, row),
      old: nodes.old_total === null ? null : rowOf(nodes.old_total, row),
      errors: nodes.total_errors === null ? null : rowOf(nodes.total_errors, row),
      oldErrors: nodes.old_total_errors === null ? null : rowOf(nodes.old_total_errors, row),
    });
    if (isWholeBelow(row)) {
      fresh.set(id, []);
    }
    if (parentRow !== null) {
      fresh.get(parent)?.push(id);
    }
  }
  for (const [id, below] of fresh) {
    children.set(id, below);
  }
  return { ...tree, nodes: known, children };
}

export function setOpen(tree: PartialTree, id: number, isOpen: boolean): PartialTree {
  const open = new Set(tree.open);
  if (isOpen) {
    open.add(id);
  } else {
    open.delete(id);
  }
  return { ...tree, open };
}

export interface TreeRow {
  readonly id: number;
  readonly level: number;
}

/** The rows from top to bottom. O(rows), without recursion: recorded stacks may be deep. */
export function visibleRows(tree: PartialTree): readonly TreeRow[] {
  const rows: TreeRow[] = [];
  const stack: TreeRow[] = [{ id: 0, level: -1 }];
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { id, level } = top;
    if (id !== 0) {
      rows.push(top);
    }
    const below = tree.open.has(id) ? (tree.children.get(id) ?? []) : [];
    for (let i = below.length - 1; i >= 0; i--) {
      stack.push({ id: below[i] ?? 0, level: level + 1 });
    }
  }
  return rows;
}
