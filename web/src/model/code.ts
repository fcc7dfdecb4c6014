// The code in answers: four tables that refer to each other by position (docs/format/json.md,
// "Code"), and the name of an entry. All their text is hostile and only becomes text nodes.
import { range } from '../base/columns';

/** Letters of the words that tell a label from others. */
const WORDS_MAX = 48;

export interface CodeTable {
  readonly functions: {
    readonly id: readonly number[];
    readonly name: readonly string[];
    readonly short: readonly (string | null)[];
    readonly module: readonly (number | null)[];
    readonly wrapper: readonly number[];
  };
  readonly locations: {
    readonly function: readonly (number | null)[];
    readonly file: readonly (number | null)[];
    readonly line: readonly number[];
    readonly offset: readonly string[];
    readonly wrapper: readonly number[];
  };
  readonly modules: { readonly path: readonly string[]; readonly name: readonly string[] };
  readonly files: { readonly path: readonly string[] };
}

/** A function or a location, resolved to text. */
export interface CodeName {
  /** Id for /function, null if there is none. */
  readonly id: number | null;
  /** The name of the function in an address: its name, or "#id" for an unnamed one. */
  readonly key: string;
  readonly label: string;
  /** The whole name; equal to `label` if `label` is not shortened. */
  readonly full: string;
  readonly module: string;
  readonly modulePath: string;
  readonly file: string;
  readonly line: number;
  /** It only passes allocations on. */
  readonly isWrapper: boolean;
}

export const NO_CODE: CodeName = {
  id: null,
  key: '',
  label: '',
  full: '',
  module: '',
  modulePath: '',
  file: '',
  line: 0,
  isWrapper: false,
};

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Uninformative parts are removed; `full` has the whole name. */
function readable(name: string): string {
  const short = name.replaceAll('(anonymous namespace)::', '').replaceAll('std::__cxx11::', 'std::');
  return short === '' ? name : short;
}

/** The lengths of what all texts begin with, and of what they end with beyond that. */
function commonEnds(texts: readonly string[]): { readonly head: number; readonly tail: number } {
  const [first = '', ...others] = texts;
  let head = first.length;
  for (const text of others) {
    head = range(Math.min(head, text.length)).find((i) => text[i] !== first[i]) ?? Math.min(head, text.length);
  }
  let tail = Math.min(...texts.map((text) => text.length)) - head;
  for (const text of others) {
    tail = range(tail).find((i) => text.at(-1 - i) !== first.at(-1 - i)) ?? tail;
  }
  return { head, tail };
}

/**
 * Labels for functions that have one short name, as the instances of a template do: with the words in which they differ.
 * "load<int>" and "load<char>" if these are what follows the name, else "insert [policy<1>]".
 */
export function distinctLabels(short: string, wholes: readonly string[]): readonly string[] {
  const { head, tail } = commonEnds(wholes);
  const [scope, last] = splitScope(short);
  const [first = ''] = wholes;
  const before = /(\w*[<(])?\w*$/.exec(first.slice(0, head))?.[0] ?? '';
  const rest = first.slice(first.length - tail);
  return wholes.map((whole) => {
    const part = whole.slice(head - before.length, whole.length - tail);
    const isOpen = part.split(/[<(]/).length > part.split(/[>)]/).length;
    const words = readable(part + (/^\w*/.exec(rest)?.[0] ?? '') + (isOpen ? (/^\w*([>)])/.exec(rest)?.[1] ?? '') : ''));
    if (words.startsWith(last)) {
      return scope + words;
    }
    const cut = words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX / 2)}…${words.slice(-WORDS_MAX / 2)}` : words;
    return words === '' ? short : `${short} [${cut}]`;
  });
}

const knownLabels = new WeakMap<CodeTable, readonly string[]>();

/** The labels of the table's functions; different names have different ones. */
function labelsOf(code: CodeTable): readonly string[] {
  const known = knownLabels.get(code);
  if (known !== undefined) {
    return known;
  }
  const { name: names, short } = code.functions;
  const labels = names.map((name, index) => readable(short[index] ?? name));
  const alike = new Map<string, Set<string>>();
  names.forEach((name, index) => {
    const label = labels[index] ?? '';
    alike.set(label, (alike.get(label) ?? new Set()).add(name));
  });
  const own = new Map<string, string>();
  for (const [label, wholes] of alike) {
    if (wholes.size > 1) {
      const texts = [...wholes];
      distinctLabels(label, texts).forEach((distinct, place) => own.set(texts[place] ?? '', distinct));
    }
  }
  const distinct = labels.map((label, index) => own.get(names[index] ?? '') ?? label);
  knownLabels.set(code, distinct);
  return distinct;
}

export function functionName(code: CodeTable, index: number | null | undefined, offset = ''): CodeName {
  if (index === null || index === undefined) {
    return { ...NO_CODE, label: offset === '' ? 'unknown' : offset, full: offset };
  }
  const moduleIndex = code.functions.module[index] ?? null;
  const module = moduleIndex === null ? '' : (code.modules.name[moduleIndex] ?? '');
  const modulePath = moduleIndex === null ? '' : (code.modules.path[moduleIndex] ?? '');
  const name = code.functions.name[index] ?? '';
  const unknown = `${module === '' ? 'unknown' : module}${offset === '' ? '' : `+${offset}`}`;
  const full = name === '' ? unknown : name;
  return {
    ...NO_CODE,
    id: code.functions.id[index] ?? null,
    key: name === '' ? `#${code.functions.id[index] ?? ''}` : name,
    label: name === '' ? unknown : (labelsOf(code)[index] ?? name),
    full,
    module: name === '' ? '' : module,
    modulePath,
    isWrapper: code.functions.wrapper[index] === 1,
  };
}

export function locationName(code: CodeTable, index: number | null | undefined): CodeName {
  if (index === null || index === undefined) {
    return { ...NO_CODE, label: 'unknown', full: 'unknown' };
  }
  const file = code.locations.file[index] ?? null;
  return {
    ...functionName(code, code.locations.function[index], code.locations.offset[index] ?? ''),
    file: file === null ? '' : (code.files.path[file] ?? ''),
    line: code.locations.line[index] ?? 0,
    isWrapper: code.locations.wrapper[index] === 1,
  };
}

/** The scopes of a C++ name, and its last part: "a::b<c::d>::" and "run(e::f)". */
export function splitScope(label: string): readonly [string, string] {
  let depth = 0;
  let end = 0;
  for (let i = 0; i + 1 < label.length; i++) {
    const character = label.charAt(i);
    if (character === '(' && depth === 0 && i > end) {
      break; // the parameters; "(anonymous class)::" would begin a part
    }
    if (depth === 0 && label.startsWith(' [', i)) {
      break; // what distinctLabels adds
    }
    depth += '<([{'.includes(character) ? 1 : '>)]}'.includes(character) ? -1 : 0;
    if (depth === 0 && label.startsWith('::', i)) {
      end = i + 2;
    }
  }
  return [label.slice(0, end), label.slice(end)];
}

/** "shop.cpp:103", or "" if the file is unknown. */
export function fileLine(name: CodeName): string {
  if (name.file === '') {
    return '';
  }
  return name.line === 0 ? baseName(name.file) : `${baseName(name.file)}:${name.line}`;
}

/** The link that opens an editor; null without a pattern, a file or a harmless scheme. */
export function editorLink(pattern: string | null, name: CodeName): string | null {
  if (pattern === null || pattern === '' || !name.file.startsWith('/')) {
    return null;
  }
  if (!/^[a-z][a-z0-9+.-]*:/i.test(pattern) || /^(javascript|data|vbscript):/i.test(pattern)) {
    return null;
  }
  const path = name.file.split('/').map(encodeURIComponent).join('/');
  return pattern
    .replaceAll('%f', path)
    .replaceAll('%l', String(Math.max(name.line, 1)))
    .replaceAll('%c', '1');
}
