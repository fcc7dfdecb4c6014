// The progress of an answer as text, from the server's report of its work. An answer takes several
// loops over the recording, one after the other. Their number is not known in advance, nor the
// length of some loops. So the text describes the running loop. Pure.
import { formatCount } from '../base/format';

export interface WorkInHand {
  readonly target: string;
  readonly phase: string;
  readonly stage: number;
  readonly done: number;
  readonly total: number;
}

export function progressText(answers: readonly WorkInHand[], target: string): string {
  const own = answers.find((answer) => answer.target === target);
  switch (own?.phase) {
    case 'waiting':
      return `waiting for ${formatCount(answers.filter((answer) => answer.phase === 'counting').length)} other answers`;
    case 'counting': {
      const step = `counting, step ${formatCount(Math.max(own.stage, 1))}`;
      if (own.total > 0) {
        return `${step}: ${Math.min(Math.floor((own.done / own.total) * 100), 100)}%`;
      }
      return own.done > 0 ? `${step}: ${formatCount(own.done)} done` : step;
    }
    case 'packing':
      return 'sending';
    default:
      return 'working';
  }
}
