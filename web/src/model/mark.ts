// Moments on the time line that people and programs set, and where recording stopped and went on. Their text is hostile.

export interface Mark {
  readonly time_ms: number;
  readonly kind: string;
  readonly text: string;
}

/** Kinds that have no text of their own. */
const KINDS: Readonly<Record<string, string>> = { start: 'recording began', stop: 'recording stopped' };
const MAX_CHARS = 40;

export function markText(mark: Mark): string {
  const text = KINDS[mark.kind] ?? (mark.text === '' ? mark.kind : mark.text);
  const chars = [...text];
  return chars.length > MAX_CHARS ? `${chars.slice(0, MAX_CHARS - 1).join('')}…` : text;
}
