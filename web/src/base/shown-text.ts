// Strangers' text made safe to read: what is invisible or turns the direction of writing around becomes an escape, so that
// no name can look like another. The same characters and the same spelling as on the terminal (src/host/text/visible_text.c).
// Pure.

// Without tab and line feed, which a tooltip of several lines has.
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
