// The context menu of code: what can be done with a function or a line, and where the menu is open.
import { editorLink, fileLine, type CodeName } from '../model/code';
import { go } from './app-state';
import { createStore } from './store';

export interface MenuPlace {
  readonly x: number;
  readonly y: number;
}

export interface MenuItem {
  readonly label: string;
  readonly help: string;
  /** A link of the editor, or what to do. */
  readonly act: string | (() => void);
}

export interface CodeMenu {
  readonly place: MenuPlace;
  readonly title: string;
  readonly items: readonly MenuItem[];
  /** Gets the focus when the menu closes. */
  readonly from: HTMLElement | null;
}

export const codeMenu = createStore<{ readonly menu: CodeMenu | null }>({ menu: null });

export interface MenuSubject {
  readonly name: CodeName;
  /** The frames that lead to it, to copy them; "": not known. */
  readonly path: string;
  /** The pattern of the editor's links. */
  readonly editor: string | null;
  readonly hasSource: boolean;
  /** A page without a server cannot filter. */
  readonly canFilter: boolean;
}

/** A regular expression for exactly this name. */
export function exactly(name: string): string {
  return `^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`;
}

function copy(text: string): () => void {
  return () => void navigator.clipboard.writeText(text);
}

export function menuItems(subject: MenuSubject): readonly MenuItem[] {
  const { name, path } = subject;
  const href = editorLink(subject.editor, name);
  const isNamed = name.id !== null && !name.key.startsWith('#');
  const filter = (field: 'focus' | 'ignore' | 'show_from'): (() => void) => () => go({ [field]: exactly(name.full), zoom: '' });
  return [
    ...(isNamed && subject.canFilter
      ? [
          { label: 'Focus', help: 'Only stacks with this function, in all views', act: filter('focus') },
          { label: 'Hide', help: 'No stacks with this function, in all views', act: filter('ignore') },
          { label: 'Show from here', help: 'Stacks begin at this function', act: filter('show_from') },
        ]
      : []),
    ...(name.id === null ? [] : [{ label: 'Merge', help: 'All calls of this function as one, with its callers and callees', act: () => go({ view: 'functions' as const, fn: name.key, fn_module: name.modulePath }) }]),
    ...(subject.hasSource && name.file.startsWith('/') ? [{ label: `Source: ${fileLine(name)}`, help: name.file, act: () => go({ view: 'source' as const, path: name.file, line: String(name.line) }) }] : []),
    ...(href === null ? [] : [{ label: 'Open in the editor', help: name.file, act: href }]),
    { label: 'Copy the name', help: name.full, act: copy(name.full) },
    ...(path === '' ? [] : [{ label: 'Copy the path', help: 'The frames that lead to it, one a line', act: copy(path) }]),
    ...(name.file === '' ? [] : [{ label: 'Copy the file and line', help: name.file, act: copy(`${name.file}:${name.line}`) }]),
  ];
}

export function openCodeMenu(subject: MenuSubject, place: MenuPlace): void {
  const from = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  codeMenu.update(() => ({ menu: { place, title: subject.name.label, items: menuItems(subject), from } }));
}

export function closeCodeMenu(): void {
  codeMenu.get().menu?.from?.focus();
  codeMenu.update(() => ({ menu: null }));
}
