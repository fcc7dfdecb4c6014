// Asks in advance what the other views will ask, one request after the other, while nobody waits for an answer. The
// browser keeps the answers, and the server says at once that they hold. A request of the page stops the one under
// way, which the server gives up.
import { prepare } from '../api/client';
import { questionsElsewhere, type Question } from './questions';
import type { Address, ViewId } from './address';

const PAUSE_MS = 150;

function isBusy(): boolean {
  return document.documentElement.dataset['busy'] !== '0';
}

function pause(): Promise<void> {
  return new Promise((resolve) => window.setTimeout(resolve, PAUSE_MS));
}

/** Ask one question; false: the page needed the server meanwhile. */
async function askQuietly(question: Question, stop: AbortSignal): Promise<boolean> {
  const abort = new AbortController();
  const giveUp = (): void => abort.abort();
  const watch = new MutationObserver(() => (isBusy() ? giveUp() : undefined));
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ['data-busy'] });
  stop.addEventListener('abort', giveUp);
  await prepare(question.route, question.params, abort.signal);
  watch.disconnect();
  stop.removeEventListener('abort', giveUp);
  return !abort.signal.aborted;
}

async function askAll(questions: readonly Question[], stop: AbortSignal): Promise<void> {
  const left = [...questions];
  while (!stop.aborted && left.length > 0) {
    await pause();
    const [next] = left;
    if (next !== undefined && !stop.aborted && !isBusy() && (await askQuietly(next, stop))) {
      left.shift();
    }
  }
}

/** Begins at once; returns how to stop. */
export function prefetch(address: Address, views: readonly ViewId[]): () => void {
  const abort = new AbortController();
  void askAll(questionsElsewhere(address, views), abort.signal);
  return () => abort.abort();
}
