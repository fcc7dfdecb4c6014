// The state of the page: the fields of the address, and the generation of the served data. Actions
// are functions of this file; the address bar follows them. A move (view, filter, zoom) adds an
// entry to the browser's history, so that Back undoes it. A refinement (typing a search) replaces
// the current entry.
import { comparesRanges, FILTER_DEFAULTS, formatAddress, parseAddress, type Address } from './address';
import { createStore } from './store';

export interface AppState {
  readonly address: Address;
  /** Grows when the server has new data: every request is sent again. */
  readonly generation: number;
  /** The server's number of its data, from the latest answer; null before the first. */
  readonly served: number | null;
  /** When the page got its data, in milliseconds since 1970. */
  readonly updatedAt: number;
  /** News of a running recording do not change the page. */
  readonly paused: boolean;
  readonly help: boolean;
  /** The filter's editor is folded in small windows, until it is used. */
  readonly isFilterOpen: boolean;
  /** One sentence about the connection or the recording, or "". */
  readonly notice: string;
}

export const appState = createStore<AppState>({
  address: parseAddress(globalThis.location?.hash ?? ''),
  generation: 0,
  served: null,
  updatedAt: Date.now(),
  paused: false,
  help: false,
  isFilterOpen: globalThis.matchMedia?.('(max-width: 960px), (max-height: 600px)').matches !== true,
  notice: '',
});

export type How = 'move' | 'refine';

export function go(patch: Partial<Address>, how: How = 'move'): void {
  appState.update((state) => {
    const address = { ...state.address, ...patch };
    const text = formatAddress(address);
    if (text === formatAddress(state.address)) {
      return state;
    }
    if (how === 'move') {
      history.pushState(null, '', text);
    } else {
      history.replaceState(null, '', text);
    }
    return { ...state, address };
  });
}

/** Put a time range into the filter, in milliseconds. */
export function filterTime(fromMs: number, toMs: number): void {
  go({ from_ms: String(Math.max(0, Math.round(fromMs))), to_ms: String(Math.max(1, Math.round(toMs))), zoom: '' });
}

/** Show the heap at a moment: what was live then. */
export function showMoment(ms: number): void {
  go({ from_ms: '', to_ms: String(Math.max(1, Math.round(ms))), classes: '', cost: 'live_bytes', zoom: '' });
}

/** Show what was allocated since a moment and is live at the end. */
export function showSince(ms: number): void {
  go({ view: 'bottom-up', from_ms: String(Math.max(1, Math.round(ms))), to_ms: '', classes: 'in_out', cost: 'live_bytes', zoom: '' });
}

/** Compare the range of the filter with another one: the later of both is what has changed. */
export function compareTime(fromMs: number, toMs: number): void {
  const { address } = appState.get();
  const other = { from: String(Math.max(0, Math.round(fromMs))), to: String(Math.max(1, Math.round(toMs))) };
  const isLater = Number(other.from) >= Number(address.from_ms);
  const now = isLater ? other : { from: address.from_ms, to: address.to_ms };
  const old = isLater ? { from: address.from_ms, to: address.to_ms } : other;
  go({ from_ms: now.from, to_ms: now.to, old_from_ms: old.from === '' ? '0' : old.from, old_to_ms: old.to, diff: '1', zoom: '' });
}

export function stopComparingTime(): void {
  go({ old_from_ms: '', old_to_ms: '', diff: '', zoom: '' });
}

export function resetTime(): void {
  const { address } = appState.get();
  go({ from_ms: '', to_ms: '', classes: '', old_from_ms: '', old_to_ms: '', zoom: '', ...(comparesRanges(address) ? { diff: '' } : {}) });
}

export function resetFilter(): void {
  const { address } = appState.get();
  go({ ...FILTER_DEFAULTS, zoom: '', ...(comparesRanges(address) ? { diff: '' } : {}) });
}

export function setFilterOpen(isFilterOpen: boolean): void {
  appState.update((state) => ({ ...state, isFilterOpen }));
}

export function setHelp(help: boolean): void {
  appState.update((state) => ({ ...state, help }));
}

/**
 * Note the generation of an answer or an event. If it differs from the earlier answers' generation,
 * all requests are sent again, so that one page never shows two recordings.
 */
export function noteGeneration(served: number | null): void {
  appState.update((state) =>
    served === null || served === state.served
      ? state
      : { ...state, served, updatedAt: Date.now(), generation: state.generation + (state.served === null ? 0 : 1) },
  );
}

/** The number of the server's latest data while the page is paused; null: none. */
let missed: number | null = null;

/** News of the server: newer data, which a paused page takes later. */
export function noteNews(generation: number): void {
  if (appState.get().paused) {
    missed = generation;
  } else {
    noteGeneration(generation);
  }
}

export function setPaused(paused: boolean): void {
  appState.update((state) => ({ ...state, paused }));
  if (!paused) {
    noteGeneration(missed);
    missed = null;
  }
}

/** Send all requests again for any generation. */
export function askAgain(): void {
  appState.update((state) => ({ ...state, served: null, generation: state.generation + 1 }));
}

export function setNotice(notice: string): void {
  appState.update((state) => ({ ...state, notice }));
}

/** Follow Back, Forward and edits of the address; remove the access token from it. */
export function followAddressBar(): void {
  const read = (): void => {
    appState.update((state) => ({ ...state, address: parseAddress(location.hash) }));
  };
  window.addEventListener('popstate', read);
  window.addEventListener('hashchange', read);
  if (new URLSearchParams(location.search).has('token')) {
    history.replaceState(null, '', location.pathname + location.hash);
  }
}
