// Follows the theme, for painted parts of the page.
import { useEffect, useState } from 'preact/hooks';
import { isDark } from '../../state/theme';

export function useDarkness(): boolean {
  const [dark, setDark] = useState(isDark());
  useEffect(() => {
    const read = (): void => setDark(isDark());
    const media = matchMedia('(prefers-color-scheme: dark)');
    window.addEventListener('cairn-theme', read);
    media.addEventListener('change', read);
    return () => {
      window.removeEventListener('cairn-theme', read);
      media.removeEventListener('change', read);
    };
  }, []);
  return dark;
}

/** The present value of a variable of the style sheet. */
export function cssVariable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
