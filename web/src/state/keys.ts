// Keys that hold wherever the focus is, but in text fields, and without modifiers.

/** `take` says whether the key was for it. Gives how to stop listening. */
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
