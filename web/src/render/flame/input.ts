// Flame graph, step 5 of 5: converts pointer and keys to actions. The listeners are the only state;
// returns a function that removes them.

export interface FlameIntent {
  readonly hover: (x: number, y: number, hasShift: boolean) => void;
  readonly leave: () => void;
  readonly zoomAt: (x: number, y: number) => void;
  /** By the keyboard there is no place in the drawing: null. */
  readonly menuAt: (at: { readonly x: number; readonly y: number } | null, clientX: number, clientY: number) => void;
  readonly move: (direction: 'up' | 'down' | 'left' | 'right') => void;
  readonly zoomSelected: () => void;
  readonly openSelected: () => void;
  readonly unfoldAt: (x: number, y: number) => void;
  readonly unfoldSelected: () => void;
  readonly reset: () => void;
}

const ARROWS: Readonly<Record<string, 'up' | 'down' | 'left' | 'right'>> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'left',
  ArrowRight: 'right',
};

function onKey(event: KeyboardEvent, intent: FlameIntent): boolean {
  const arrow = ARROWS[event.key];
  if (arrow !== undefined && !event.altKey) {
    intent.move(arrow);
  } else if (event.key === 'Enter') {
    intent.zoomSelected();
  } else if (event.key === 'o') {
    intent.openSelected();
  } else if (event.key === 'u') {
    intent.unfoldSelected();
  } else if (event.key === 'Escape') {
    intent.reset();
  } else {
    return false;
  }
  return true;
}

export function listenFlame(target: HTMLElement, intent: FlameIntent): () => void {
  const abort = new AbortController();
  const { signal } = abort;
  target.addEventListener('pointermove', (e) => intent.hover(e.offsetX, e.offsetY, e.shiftKey), { signal });
  target.addEventListener('pointerleave', () => intent.leave(), { signal });
  target.addEventListener('click', (e) => (e.shiftKey ? intent.unfoldAt(e.offsetX, e.offsetY) : intent.zoomAt(e.offsetX, e.offsetY)), { signal });
  target.addEventListener(
    'contextmenu',
    (e) => {
      e.preventDefault();
      intent.menuAt(e.button === 2 ? { x: e.offsetX, y: e.offsetY } : null, e.clientX, e.clientY);
    },
    { signal },
  );
  target.addEventListener(
    'keydown',
    (e) => {
      if (onKey(e, intent)) {
        e.preventDefault();
        e.stopPropagation();
      }
    },
    { signal },
  );
  return () => abort.abort();
}
