// The state of the page: what the address says, and the generation of what is served. Actions are functions of
// this file; the address bar follows them. Moving (view, filter, zoom) makes an entry of the browser's history, so
// that Back undoes it; refining (typing a search) replaces the current one.
import { FILTER_DEFAULTS, formatAddress, parseAddress, type Address } from './address';
import { createStore } from './store';

export interface AppState {
  readonly address: Address;
  /** Grows when the server has something new: every answer is asked for again. */
  readonly generation: number;
  /** The server's number of what it serves, as the latest answer said; null before the first. */
  readonly served: number | null;
  readonly help: boolean;
  /** One sentence about the connection or the recording, "" for none. */
  readonly notice: string;
}

export const appState = createStore<AppState>({
  address: parseAddress(globalThis.location?.hash ?? ''),
  generation: 0,
  served: null,
  help: false,
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

export function resetFilter(): void {
  go({ ...FILTER_DEFAULTS, zoom: '' });
}

export function setHelp(help: boolean): void {
  appState.update((state) => ({ ...state, help }));
}

/**
 * Takes in what an answer or an event says is served now. If that is not what the answers before were of, all of them
 * are asked for again, so that one page never shows two recordings.
 */
export function noteGeneration(served: number | null): void {
  appState.update((state) =>
    served === null || served === state.served
      ? state
      : { ...state, served, generation: state.generation + (state.served === null ? 0 : 1) },
  );
}

/** Asks for everything again, whatever is served. */
export function askAgain(): void {
  appState.update((state) => ({ ...state, served: null, generation: state.generation + 1 }));
}

export function setNotice(notice: string): void {
  appState.update((state) => ({ ...state, notice }));
}

/** Follows Back, Forward and edits of the address; takes the access token out of it. */
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
