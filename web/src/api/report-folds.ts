// Folds wrapper frames in the trees of a report file. The file has only trees with every frame, so
// the viewer can unfold a single run of wrappers. The rules are those of the server:
// src/profile/calls/call_tree.h. The file has the self costs; totals are their sums. Pure.
import { nameHash } from '../base/name-hash';
import { code as codeTables } from './answers';
import { figures, flag, list, num, nums, object, orNull, record, refs, type Decoded } from './decode';
import { addSizes, errorOf, type Sizes } from './report-errors';

const wholeTree = object({
  nodes: object({
    count: num,
    id: nums,
    parent: refs,
    function: refs,
    inlined: list(flag),
    self: record(figures),
    inverse_lengths: orNull(nums),
    shortest_length: orNull(nums),
  }),
  /** Null: all costs are exact. */
  variance: orNull(num),
  code: codeTables,
});
type WholeTree = Decoded<typeof wholeTree>;

interface FoldedNode {
  readonly parent: number | null;
  readonly depth: number;
  readonly function: number | null;
  readonly inlined: number;
  /** The functions from the root by their names, as a number of 52 bits. */
  readonly path: number;
  hidden: number;
  unfoldedBy: number;
  childCount: number;
  readonly self: number[];
  readonly total: number[];
  /** Of `self` and of `total`; only used for errors. */
  readonly selfSizes: Sizes;
  readonly totalSizes: Sizes;
}

const LOW_BITS = 2 ** 32;
const HIGH_BITS = 2 ** 20;

function pathBelow(parent: number, name: string): number {
  return (nameHash(`${parent}:${name}`) % HIGH_BITS) * LOW_BITS + nameHash(`${name}:${parent}`);
}

class Folder {
  readonly nodes: FoldedNode[] = [];
  private readonly places = new Map<string, number>();

  constructor(
    private readonly whole: WholeTree,
    private readonly costs: readonly (readonly number[])[],
    private readonly unfolded: ReadonlySet<number>,
    private readonly isBottomUp: boolean,
  ) {
    this.add(null, null, 0, 0);
  }

  private add(parent: number | null, fn: number | null, inlined: number, path: number): number {
    const above = parent === null ? undefined : this.nodes[parent];
    const none = this.costs.map(() => 0);
    this.nodes.push({ parent, depth: above === undefined ? 0 : above.depth + 1, function: fn, inlined, path, hidden: 0, unfoldedBy: 0, childCount: 0, self: none, total: [...none], selfSizes: { inverse: 0, shortest: 0 }, totalSizes: { inverse: 0, shortest: 0 } });
    if (above !== undefined) {
      above.childCount++;
    }
    return this.nodes.length - 1;
  }

  private path(place: number, frame: number): number {
    return pathBelow(this.nodes[place]?.path ?? 0, this.whole.code.functions.name[this.whole.nodes.function[frame] ?? -1] ?? '');
  }

  isWrapper(frame: number | undefined): boolean {
    return frame !== undefined && this.whole.code.functions.wrapper[this.whole.nodes.function[frame] ?? -1] === 1;
  }

  /** The child of a node for a frame, which is a row of the whole tree. */
  private descend(place: number, frame: number | undefined, unfoldedBy = 0): number {
    if (frame === undefined) {
      return place;
    }
    const fn = this.whole.nodes.function[frame] ?? null;
    const key = `${place} ${fn ?? ''}`;
    const child = this.places.get(key) ?? this.add(place, fn, this.whole.nodes.inlined[frame] ?? 0, this.path(place, frame));
    this.places.set(key, child);
    const node = this.nodes[child];
    if (node !== undefined && unfoldedBy !== 0) {
      node.unfoldedBy = unfoldedBy;
    }
    return child;
  }

  /** A node for each frame of a run if its path is unfolded; else the node that hides `count` of them. */
  private run(place: number, run: readonly number[], path: number, shown: number | undefined, count: number): number {
    if (this.unfolded.has(path)) {
      return run.reduce((at, frame) => this.descend(at, frame, path), place);
    }
    const at = this.descend(place, shown);
    const node = this.nodes[at];
    if (node !== undefined) {
      node.hidden = Math.max(node.hidden, count);
    }
    return at;
  }

  /** Where the stack of these frames begins, from the root on, and how many of them that takes. */
  private begin(frames: readonly number[]): { readonly at: number; readonly taken: number } {
    const found = frames.findIndex((frame) => !this.isWrapper(frame));
    const first = found < 0 ? frames.length : found;
    if (first === frames.length) { // wrapper frames alone: the innermost
      return this.isBottomUp ? { at: this.descend(0, frames[0]), taken: 1 } : { at: this.descend(0, frames[first - 1]), taken: first };
    }
    const site = frames[first];
    if (!this.isBottomUp || first === 0 || site === undefined) {
      return { at: this.descend(0, site), taken: first + 1 };
    }
    const path = this.path(0, site);
    const at = this.run(0, frames.slice(0, first), path, site, first);
    return { at: this.unfolded.has(path) ? this.descend(at, site) : at, taken: first + 1 };
  }

  /** The node at which the stack of these frames ends. */
  place(frames: readonly number[]): number {
    if (frames.length === 0) {
      return 0;
    }
    const begun = this.begin(frames);
    let at = begun.at;
    for (let i = begun.taken; i < frames.length; ) {
      let end = i;
      while (this.isWrapper(frames[end])) {
        end++;
      }
      const run = frames.slice(i, end);
      const outermost = this.isBottomUp ? run[run.length - 1] : run[0];
      if (outermost === undefined) {
        at = this.descend(at, frames[i]);
        i++;
      } else if (end === frames.length) {
        at = this.run(at, run, this.nodes[at]?.path ?? 0, undefined, run.length);
        i = end;
      } else {
        at = this.run(at, run, this.path(at, outermost), outermost, run.length - 1);
        i = end;
      }
    }
    return at;
  }

  /** Count a row's stacks at a node. */
  count(row: number, place: number): void {
    const node = this.nodes[place];
    if (node === undefined) {
      return;
    }
    this.costs.forEach((column, cost) => {
      node.self[cost] = (node.self[cost] ?? 0) + (column[row] ?? 0);
    });
    const { inverse_lengths: inverse, shortest_length: shortest } = this.whole.nodes;
    addSizes(node.selfSizes, { inverse: inverse?.[row] ?? 0, shortest: shortest?.[row] ?? 0 });
  }

  addUp(): void {
    for (const node of [...this.nodes].reverse()) { // children are after their parents
      const above = node.parent === null ? undefined : this.nodes[node.parent];
      node.self.forEach((value, cost) => {
        const total = (node.total[cost] ?? 0) + value;
        node.total[cost] = total;
        if (above !== undefined) {
          above.total[cost] = (above.total[cost] ?? 0) + total;
        }
      });
      addSizes(node.totalSizes, node.selfSizes);
      if (above !== undefined) {
        addSizes(above.totalSizes, node.totalSizes);
      }
    }
  }
}

const storedTree = object({
  nodes: object({ parent: refs, function: refs, hidden: nums }),
  code: codeTables,
});

/** The paths that foldNodes has for the nodes of a tree that the server folded; 0 for those that hide nothing. */
export function pathsOf(raw: unknown): readonly number[] {
  const { nodes, code } = storedTree(raw, 'tree');
  const paths: number[] = [];
  nodes.parent.forEach((above, row) => {
    paths.push(above === null ? 0 : pathBelow(paths[above] ?? 0, code.functions.name[nodes.function[row] ?? -1] ?? ''));
  });
  return paths.map((path, row) => ((nodes.hidden[row] ?? 0) > 0 ? path : 0));
}

/** The nodes of an answer of /tree, with their wrapper frames folded, but for the runs with these paths. */
export function foldNodes(raw: unknown, unfolded: ReadonlySet<number>, isBottomUp: boolean): Readonly<Record<string, unknown>> {
  const whole = wholeTree(raw, 'tree');
  const keys = Object.keys(whole.nodes.self);
  const costs = keys.map((key) => whole.nodes.self[key] ?? []);
  const folder = new Folder(whole, costs, unfolded, isBottomUp);
  const { count, id, parent } = whole.nodes;
  const stacks: (readonly number[])[] = []; // by row: the frames from the root
  for (const row of Array.from({ length: count }, (_, place) => place).sort((a, b) => (id[a] ?? 0) - (id[b] ?? 0))) { // as the server made them
    const above = parent[row] ?? null;
    const frames = above === null ? [] : [...(stacks[above] ?? []), row];
    stacks[row] = frames;
    if (costs.some((column) => (column[row] ?? 0) > 0)) {
      folder.count(row, folder.place(frames));
    } else if (!folder.isWrapper(row)) {
      folder.place(frames); // made now, for its place among its siblings
    }
  }
  folder.addUp();
  const { nodes } = folder;
  const columns = (of: 'self' | 'total'): Record<string, readonly number[]> => Object.fromEntries(keys.map((key, cost) => [key, nodes.map((node) => node[of][cost] ?? 0)]));
  const { variance } = whole;
  const errors = (of: 'self' | 'total', sizes: 'selfSizes' | 'totalSizes'): Record<string, readonly number[]> =>
    Object.fromEntries(keys.map((key, cost) => [key, nodes.map((node) => errorOf(variance ?? 0, key, node[of][cost] ?? 0, node[sizes]))]));
  return {
    count: nodes.length,
    id: nodes.map((_, place) => place),
    parent: nodes.map((node) => node.parent),
    depth: nodes.map((node) => node.depth),
    function: nodes.map((node) => node.function),
    inlined: nodes.map((node) => node.inlined),
    child_count: nodes.map((node) => node.childCount),
    self: columns('self'),
    total: columns('total'),
    hidden: nodes.map((node) => node.hidden),
    path: nodes.map((node) => (node.hidden > 0 ? node.path : 0)),
    unfolded_by: nodes.map((node) => node.unfoldedBy),
    ...(variance === null
      ? {}
      : {
          self_errors: errors('self', 'selfSizes'),
          total_errors: errors('total', 'totalSizes'),
          inverse_lengths: nodes.map((node) => node.selfSizes.inverse),
          shortest_length: nodes.map((node) => node.selfSizes.shortest),
        }),
  };
}
