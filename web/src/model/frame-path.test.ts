// Paths of frames: the same in any tree with the same names, and no two of one tree alike.
import { describe, expect, it } from 'vitest';
import { range } from '../base/columns';
import { findPath, framePaths, pathOf } from './frame-path';

interface Drawn {
  readonly names: readonly string[];
  readonly nodes: { readonly count: number; readonly parent: readonly (number | null)[]; readonly depth: readonly number[] };
}

/** "  b": the function b, two levels below the root. */
function draw(lines: readonly string[]): Drawn {
  const depth = lines.map((line) => line.search(/\S/));
  const parent = lines.map((_, row) => {
    const above = range(row).reverse().find((candidate) => (depth[candidate] ?? 0) < (depth[row] ?? 0));
    return above ?? null;
  });
  return { names: lines.map((line) => line.trim()), nodes: { count: lines.length, parent, depth } };
}

function pathsOf({ names, nodes }: Drawn): readonly string[] {
  const paths = framePaths(nodes, (row) => names[row] ?? '');
  return range(nodes.count).map((row) => pathOf(nodes, paths, row));
}

const OLD = draw(['all', ' a', '  b', '   a', '  a', '   b', ' b', '  a']);

describe('the path of a frame', () => {
  it('is of this frame alone', () => expect(new Set(pathsOf(OLD)).size).toBe(OLD.nodes.count));

  it('is found again where other frames are before it', () => {
    const grown = draw(['all', ' new', '  a', ' b', '  c', '  a', ' a', '  a', '   b', '  b', '   a']);
    const paths = framePaths(grown.nodes, (row) => grown.names[row] ?? '');
    const found = pathsOf(OLD).map((path) => findPath(grown.nodes, paths, path));
    expect(found).toEqual([0, 6, 9, 10, 7, 8, 3, 5]);
  });

  it.each(['', '55', '1.', '2.zzzzzz', '.1'])('%j is of none', (path) => {
    const paths = framePaths(OLD.nodes, (row) => OLD.names[row] ?? '');
    expect(findPath(OLD.nodes, paths, path)).toBe(-1);
  });

  it('of two siblings with one name is that of the first', () => {
    const twins = draw(['all', ' a', ' a']);
    const paths = framePaths(twins.nodes, (row) => twins.names[row] ?? '');
    expect(findPath(twins.nodes, paths, pathOf(twins.nodes, paths, 2))).toBe(1);
  });
});
