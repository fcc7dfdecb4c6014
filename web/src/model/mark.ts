// Moments on the time line that people set, and where recording stopped and went on. Their text is hostile.

export interface Mark {
  readonly time_ms: number;
  readonly kind: string;
  readonly text: string;
}

const KINDS: Readonly<Record<string, string>> = { start: 'recording began', stop: 'recording stopped' };
const MAX_CHARS = 40;

export function markText(mark: Mark): string {
  const text = mark.kind === 'mark' ? mark.text : (KINDS[mark.kind] ?? mark.kind);
  const chars = [...text];
  return chars.length > MAX_CHARS ? `${chars.slice(0, MAX_CHARS - 1).join('')}…` : text;
}
