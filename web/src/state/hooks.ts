// Hooks for views: the state, and an answer of the server.
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

/** `value` stays until a newer one arrives, which avoids flicker. */
export interface Asked<T> {
  readonly value: T | null;
  readonly error: AppError | null;
  readonly busy: boolean;
  /** The query that `value` answers. */
  readonly question: string;
  /** The query that is now sent to the server. */
  readonly target: string;
  /** Stop waiting; the server stops its work too. */
  readonly cancel: () => void;
  /** Send the same query again. */
  readonly again: () => void;
}

export const CANCELLED: AppError = { code: 'cancelled', message: 'you stopped this' };

let waiting = 0;

/**
 * Waits are counted on the root element, for tests and for the busy line: data-busy is "0" without
 * waits.
 */
export function countWaiting(change: number): void {
  waiting += change;
  document.documentElement.dataset['busy'] = String(waiting);
}

/** Whether `value` answers the query that is now sent, at whatever generation. */
export function isCurrent(asked: Asked<unknown>): boolean {
  return asked.value !== null && asked.target.endsWith(`/${asked.question.split('#')[0] ?? ''}`);
}

type State<T> = Omit<Asked<T>, 'target' | 'cancel' | 'again'>;

/** Query `route`, and again when the parameters or the generation change; null sends nothing. */
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
