// Marks on the time line: set by users and programs, and where recording stopped and continued.
// Their text is hostile.

export interface Mark {
  readonly time_ms: number;
  readonly kind: string;
  readonly text: string;
}

/** Kinds without their own text. */
const KINDS: Readonly<Record<string, string>> = { start: 'recording began', stop: 'recording stopped' };
const MAX_CHARS = 40;

export function markText(mark: Mark): string {
  const text = KINDS[mark.kind] ?? (mark.text === '' ? mark.kind : mark.text);
  const chars = [...text];
  return chars.length > MAX_CHARS ? `${chars.slice(0, MAX_CHARS - 1).join('')}…` : text;
}
