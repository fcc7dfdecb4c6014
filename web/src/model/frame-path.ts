// The place of a frame in a tree as a short text for addresses: "4.1kz09a", its depth and a hash of
// the names from the root to it. Ids of nodes hold within one generation of one recording, names in
// every recording of the program. Of siblings with one name, the first has the path. Pure; O(nodes).
import { at } from '../base/columns';
import { nameHash } from '../base/name-hash';
import type { TreeNodes } from './tree';

type Shape = Pick<TreeNodes, 'count' | 'parent' | 'depth'>;

/** Odd, so that different names below one node always have different hashes. */
const MULTIPLIER = 0x9e3779b1;
const RADIX = 36;

/** A hash for each node; `key`: the name of its function. Parents are before their children. */
export function framePaths(nodes: Shape, key: (row: number) => string): readonly number[] {
  const known = new Map<string, number>();
  const paths: number[] = [];
  for (let row = 0; row < nodes.count; row++) {
    const name = key(row);
    const own = known.get(name) ?? nameHash(name);
    known.set(name, own);
    const above = nodes.parent[row] ?? null;
    paths.push(Math.imul((above === null ? 0 : at(paths, above)) ^ own, MULTIPLIER) >>> 0);
  }
  return paths;
}

export function pathOf(nodes: Shape, paths: readonly number[], row: number): string {
  return `${at(nodes.depth, row)}.${at(paths, row).toString(RADIX)}`;
}

/** The first row with that path; -1 without one. */
export function findPath(nodes: Shape, paths: readonly number[], path: string): number {
  const [depth, hash] = path.split('.');
  const wanted = Number.parseInt(hash ?? '', RADIX);
  return paths.findIndex((own, row) => own === wanted && String(at(nodes.depth, row)) === depth);
}
