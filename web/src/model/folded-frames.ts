// Wrapper frames in a row folded to one line, in stacks and in trees. Pure.
import { splitScope, type CodeName } from './code';
import type { TreeNodes } from './tree';

export interface FrameRun {
  /** Position of the first frame, and the number of frames: 1 unless it is folded. */
  readonly first: number;
  readonly count: number;
  /** "3 frames of std::vector"; "" for a single frame. */
  readonly label: string;
}

/** What frames of this kind belong to: the class or namespace, else the module. */
function scopeOf(name: CodeName): string {
  const [scope] = splitScope(name.label);
  return scope.length > 2 ? scope.slice(0, -2) : name.module === '' ? name.label : name.module;
}

/** The lines of a stack, innermost first. A run is named after its outermost frame, which was called. */
export function foldFrames(names: readonly CodeName[]): readonly FrameRun[] {
  const runs: FrameRun[] = [];
  for (let first = 0; first < names.length; ) {
    let end = first + 1;
    while (names[first]?.isWrapper === true && names[end]?.isWrapper === true) {
      end++;
    }
    const outermost = names[end - 1];
    const count = end - first;
    runs.push({ first, count, label: count === 1 || outermost === undefined ? '' : `${count} frames of ${scopeOf(outermost)}` });
    first = end;
  }
  return runs;
}

/** What a node of a tree hides. The paths are the server's numbers; 0: none. */
export interface Fold {
  /** Wrapper frames: the others of a run, or those between a call site and the allocation. */
  readonly hidden: number;
  readonly path: number;
  readonly unfoldedBy: number;
}

export const NO_FOLD: Fold = { hidden: 0, path: 0, unfoldedBy: 0 };

export function foldOf(nodes: TreeNodes, row: number): Fold {
  return { hidden: nodes.hidden?.[row] ?? 0, path: nodes.path?.[row] ?? 0, unfoldedBy: nodes.unfolded_by?.[row] ?? 0 };
}

/** "3 frames of std::vector" for a node that stands for a run; else its name. */
export function foldedLabel(name: CodeName, fold: Fold): string {
  return name.isWrapper && fold.hidden > 0 ? `${fold.hidden + 1} frames of ${scopeOf(name)}` : name.label;
}

/** The list of unfolded paths, as in the address, after the reader unfolded or folded the node. */
export function toggleFold(unfolded: string, fold: Fold): string {
  const paths = unfolded === '' ? [] : unfolded.split(',');
  if (fold.hidden > 0 && fold.path > 0) {
    return [...paths.filter((path) => path !== String(fold.path)), String(fold.path)].join(',');
  }
  return paths.filter((path) => path !== String(fold.unfoldedBy)).join(',');
}

/** What toggleFold would do; "" for a node that hides nothing and was not unfolded. */
export function foldAction(fold: Fold): string {
  if (fold.hidden > 0 && fold.path > 0) {
    return `Show ${fold.hidden === 1 ? 'the wrapper frame' : `the ${fold.hidden} wrapper frames`} folded here (u)`;
  }
  return fold.unfoldedBy > 0 ? 'Fold these wrapper frames again (u)' : '';
}
