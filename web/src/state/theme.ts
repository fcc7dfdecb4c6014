// Light, dark, or the system's preference. Stored in the browser, not in the address, because it
// belongs to the reader.

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'cairn-theme';

export function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') {
    delete document.documentElement.dataset['theme'];
  } else {
    document.documentElement.dataset['theme'] = theme;
  }
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser without storage shows the theme until the page is closed.
  }
  window.dispatchEvent(new Event('cairn-theme'));
}

export function isDark(): boolean {
  const theme = document.documentElement.dataset['theme'];
  return theme === undefined ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
}
