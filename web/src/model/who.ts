// The choices of the filter: processes and threads, each with the filter's value. Names of
// processes and threads are hostile text; a value is an id if there is one.
import { baseName } from './code';

export interface Choice {
  readonly value: string;
  readonly label: string;
}

export interface ProcessTable {
  readonly count: number;
  readonly pid: readonly number[];
  readonly executable: readonly string[];
  readonly command_line: readonly string[];
}

export interface ThreadTable {
  readonly count: number;
  readonly thread_id: readonly number[];
  readonly pid: readonly number[];
  readonly name: readonly string[];
}

/** Names by id, each id once: a process that executed another program has all its names. */
class NamesById {
  private readonly names = new Map<number, readonly string[]>();

  add(id: number, name: string): void {
    const known = this.names.get(id) ?? [];
    this.names.set(id, name === '' || known.at(-1) === name ? known : [...known, name]);
  }

  choices(unnamed: string): readonly Choice[] {
    return [...this.names].map(([id, names]) => ({ value: String(id), label: `${names.join(', then ') || unnamed} (${id})` }));
  }
}

export function processChoices(table: ProcessTable): readonly Choice[] {
  const names = new NamesById();
  for (let row = 0; row < table.count; row++) {
    names.add(table.pid[row] ?? 0, baseName(table.executable[row] ?? '') || (table.command_line[row] ?? ''));
  }
  return names.choices('unknown');
}

/**
 * A name that the filter would not read as a pattern or as an id: without "*", "?" and not a
 * number.
 */
function isPlainName(name: string): boolean {
  return name !== '' && !/[*?]/.test(name) && !/^\d+$/.test(name);
}

/** First the names of several threads, then each thread; of one process unless `pid` is "". */
export function threadChoices(table: ThreadTable, pid: string): readonly Choice[] {
  const bearers = new Map<string, Set<number>>();
  const names = new NamesById();
  for (let row = 0; row < table.count; row++) {
    if (pid !== '' && String(table.pid[row]) !== pid) {
      continue;
    }
    const id = table.thread_id[row] ?? 0;
    const name = table.name[row] ?? '';
    names.add(id, name);
    bearers.set(name, (bearers.get(name) ?? new Set()).add(id));
  }
  const shared = [...bearers]
    .filter(([name, ids]) => ids.size > 1 && isPlainName(name))
    .map(([name, ids]) => ({ value: name, label: `all ${ids.size} called ${name}` }));
  return [...shared, ...names.choices('unnamed')];
}

/**
 * `choices`, with an added choice for `value` if it is missing: a picker must show the active
 * value.
 */
export function withCurrent(choices: readonly Choice[], value: string): readonly Choice[] {
  return value === '' || choices.some((choice) => choice.value === value) ? choices : [{ value, label: value }, ...choices];
}
