// The context menu of a function: opened by a right click, the menu key or Shift+F10.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { inReport } from '../api/report-file';
import type { CodeName } from '../model/code';
import { closeCodeMenu, codeMenu, openCodeMenu, type CodeMenu, type MenuItem, type MenuPlace } from '../state/code-menu';
import { useCapability, useMeta } from './parts/meta-context';
import './code-menu.css';

/** Opens the menu of a name; `path`: the frames that lead to it. */
export function useCodeMenu(): (name: CodeName, place: MenuPlace, path?: string) => void {
  const { editor } = useMeta();
  const hasSource = useCapability('source');
  return (name, place, path = '') => openCodeMenu({ name, path, editor, hasSource, canFilter: !inReport() }, place);
}

function Item(props: { readonly item: MenuItem }): JSX.Element {
  const { item } = props;
  return typeof item.act === 'string' ? (
    <a role="menuitem" tabIndex={-1} href={item.act} title={item.help} onClick={closeCodeMenu}>
      {item.label}
    </a>
  ) : (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      title={item.help}
      onClick={() => {
        closeCodeMenu();
        if (typeof item.act !== 'string') {
          item.act();
        }
      }}
    >
      {item.label}
    </button>
  );
}

/** The entry that a key goes to, of `count`; null: the key is none of the menu's. */
function nextItem(key: string, here: number, count: number): number | null {
  switch (key) {
    case 'ArrowDown':
      return (here + 1) % count;
    case 'ArrowUp':
      return (here + count - 1) % count;
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    default:
      return null;
  }
}

function Open(props: { readonly menu: CodeMenu }): JSX.Element {
  const { menu } = props;
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState(menu.place);
  const items = (): readonly HTMLElement[] => [...(box.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
  useLayoutEffect(() => {
    const size = box.current?.getBoundingClientRect();
    setPlace({ x: Math.max(Math.min(menu.place.x, innerWidth - (size?.width ?? 0) - 4), 4), y: Math.max(Math.min(menu.place.y, innerHeight - (size?.height ?? 0) - 4), 4) });
    items()[0]?.focus();
  }, [menu]);
  useEffect(() => {
    const outside = (event: Event): void => {
      if (event.target instanceof Node && box.current?.contains(event.target) !== true) {
        codeMenu.update(() => ({ menu: null }));
      }
    };
    window.addEventListener('pointerdown', outside, true);
    window.addEventListener('scroll', outside, true);
    window.addEventListener('blur', closeCodeMenu);
    return () => {
      window.removeEventListener('pointerdown', outside, true);
      window.removeEventListener('scroll', outside, true);
      window.removeEventListener('blur', closeCodeMenu);
    };
  }, []);
  const onKey = (event: KeyboardEvent): void => {
    const all = items();
    const next = nextItem(event.key, all.findIndex((item) => item === document.activeElement), all.length);
    if (next !== null) {
      all[next]?.focus();
    } else if (event.key === 'Escape' || event.key === 'Tab') {
      closeCodeMenu();
    } else if (event.key !== 'Enter' && event.key !== ' ') {
      return;
    } else {
      event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div ref={box} class="code-menu" role="menu" aria-label={menu.title} style={{ left: `${place.x}px`, top: `${place.y}px` }} onKeyDown={onKey} onContextMenu={(event) => event.preventDefault()}>
      <p class="code-menu-title mono">{menu.title}</p>
      {menu.items.map((item) => (
        <Item key={item.label} item={item} />
      ))}
    </div>
  );
}

export function CodeMenuLayer(): JSX.Element | null {
  const [menu, setMenu] = useState(codeMenu.get().menu);
  useEffect(() => codeMenu.subscribe(() => setMenu(codeMenu.get().menu)), []);
  return menu === null ? null : <Open menu={menu} />;
}
