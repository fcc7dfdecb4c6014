// Mappings added up by who asked for them: a call site of the program, else the file, else the kind. Pure.
import { at, range } from '../base/columns';

export interface MappingTable {
  readonly count: number;
  readonly path: readonly string[];
  readonly kind: readonly string[];
  readonly areas: readonly number[];
  readonly rss_bytes: readonly number[];
  readonly virtual_bytes: readonly number[];
  readonly swap_bytes: readonly number[];
  readonly location: readonly (number | null)[];
}

export interface Owner {
  readonly location: number | null;
  /** Of a file; "": memory without one, which its kind describes. */
  readonly path: string;
  readonly kind: string;
  readonly areas: number;
  readonly rss: number;
  readonly virtual: number;
  readonly swap: number;
}

/** The name of the owner of a row, the same for all its rows. */
function keyOf(table: MappingTable, row: number): string {
  const location = table.location[row] ?? null;
  const path = table.path[row] ?? '';
  const isFile = path.startsWith('/');
  return location === null ? `${isFile ? path : ''}\n${table.kind[row] ?? ''}` : `#${location}`;
}

/** Whether a row has any memory: some are of areas that were gone when they were read. */
export function hasMemory(table: MappingTable, row: number): boolean {
  return at(table.virtual_bytes, row) + at(table.rss_bytes, row) + at(table.swap_bytes, row) > 0;
}

/** The owners with any memory, the largest resident one first. */
export function ownersOf(table: MappingTable): readonly Owner[] {
  const owners = new Map<string, Owner>();
  for (const row of range(table.count).filter((each) => hasMemory(table, each))) {
    const key = keyOf(table, row);
    const path = table.path[row] ?? '';
    const known = owners.get(key) ?? { location: table.location[row] ?? null, path: path.startsWith('/') ? path : '', kind: table.kind[row] ?? '', areas: 0, rss: 0, virtual: 0, swap: 0 };
    owners.set(key, {
      ...known,
      areas: known.areas + at(table.areas, row),
      rss: known.rss + at(table.rss_bytes, row),
      virtual: known.virtual + at(table.virtual_bytes, row),
      swap: known.swap + at(table.swap_bytes, row),
    });
  }
  return [...owners.values()].sort((a, b) => b.rss - a.rss || b.virtual - a.virtual);
}
