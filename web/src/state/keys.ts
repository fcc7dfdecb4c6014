// Keys that work with any focus except text fields, without modifiers.

/** `take` returns whether it used the key. Returns a function that stops listening. */
export function onKeyOutsideFields(take: (key: string) => boolean): () => void {
  const onKey = (event: KeyboardEvent): void => {
    const { target } = event;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && take(event.key)) {
      event.preventDefault();
    }
  };
  window.addEventListener('keydown', onKey);
  return () => window.removeEventListener('keydown', onKey);
}
