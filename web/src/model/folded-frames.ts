// The frames of a stack with several wrapper frames in a row folded to one line. Pure.
import type { CodeName } from './code';

export interface FrameRun {
  /** Position of the first frame, and the number of frames: 1 unless it is folded. */
  readonly first: number;
  readonly count: number;
  /** "3 frames of std::vector"; "" for a single frame. */
  readonly label: string;
}

/** What frames of this kind belong to: the class or namespace, else the module. */
function scopeOf(name: CodeName): string {
  const end = name.label.lastIndexOf('::');
  return end > 0 ? name.label.slice(0, end) : name.module === '' ? name.label : name.module;
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
