// Untrusted text made safe to read: invisible characters and characters that change the direction
// of text become escapes, so that a name cannot look like another. The characters and escapes are
// those of the terminal (src/host/text/visible_text.c). Pure.

// Except tab and line feed, which tooltips with several lines have.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code < 0x80 ? `\\x${digits.padStart(2, '0')}` : `\\u{${digits}}`;
}

export function shownText(text: string): string {
  return text.replace(HIDDEN, escape);
}
