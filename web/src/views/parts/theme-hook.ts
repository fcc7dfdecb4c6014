// Follows the theme, for what is painted rather than styled.
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

/** A variable of the style sheet, as it is now. */
export function cssVariable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
