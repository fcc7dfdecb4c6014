// What views use: the state as a hook, and an answer of the server as a hook.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, query, targetOf } from '../api/client';
import type { Decode } from '../api/decode';
import type { AppError } from '../base/result';
import type { Address } from './address';
import { appState, noteGeneration, type AppState } from './app-state';

export function useAppState(): AppState {
  const [state, setState] = useState(appState.get());
  useEffect(() => {
    const read = (): void => setState(appState.get());
    read();
    return appState.subscribe(read);
  }, []);
  return state;
}

export function useAddress(): Address {
  return useAppState().address;
}

/** `value` stays while a newer one is on its way, so that nothing flickers. */
export interface Asked<T> {
  readonly value: T | null;
  readonly error: AppError | null;
  readonly busy: boolean;
  /** The question that `value` answers. */
  readonly question: string;
  /** What the server is asked for now. */
  readonly target: string;
  /** Stops waiting; the server stops working on it, too. */
  readonly cancel: () => void;
  /** Asks the same once more. */
  readonly again: () => void;
}

export const CANCELLED: AppError = { code: 'cancelled', message: 'you stopped this' };

let waiting = 0;

/** Waits are counted on the root element, for tests and for the busy line: data-busy is "0" when all is still. */
export function countWaiting(change: number): void {
  waiting += change;
  document.documentElement.dataset['busy'] = String(waiting);
}

type State<T> = Omit<Asked<T>, 'target' | 'cancel' | 'again'>;

/** Asks `route`, again when the parameters or the generation change; null asks nothing. */
export function useAsk<T>(
  route: string | null,
  params: Readonly<Record<string, string>>,
  decode: Decode<T>,
): Asked<T> {
  const { generation } = useAppState();
  const [attempt, setAttempt] = useState(0);
  const question = route === null ? '' : `${route}${query(params)}#${generation}.${attempt}`;
  const [asked, setAsked] = useState<State<T>>({ value: null, error: null, busy: true, question: '' });
  const latest = useRef(params);
  latest.current = params;
  const stop = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (route === null) {
      setAsked({ value: null, error: null, busy: false, question });
      return undefined;
    }
    const abort = new AbortController();
    countWaiting(1);
    setAsked((old) => ({ ...old, error: null, busy: true }));
    stop.current = () => {
      abort.abort();
      setAsked((old) => ({ ...old, value: null, error: CANCELLED, busy: false, question }));
    };
    void ask(route, latest.current, decode, abort.signal).then((result) => {
      countWaiting(-1);
      if (abort.signal.aborted) {
        return;
      }
      noteGeneration(result.generation);
      setAsked((old) =>
        result.ok
          ? { value: result.value, error: null, busy: false, question }
          : { ...old, value: null, error: result.error, busy: false, question },
      );
    });
    return () => abort.abort();
  }, [question]);
  return { ...asked, target: route === null ? '' : targetOf(route, params), cancel: () => stop.current(), again: () => setAttempt(attempt + 1) };
}
