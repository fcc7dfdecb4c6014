// Starts the page: the theme, the address, and the shell.
import { render } from 'preact';
import './views/parts/tokens.css';
import { followAddressBar } from './state/app-state';
import { applyTheme, readTheme } from './state/theme';
import { showSafeText } from './views/parts/safe-text';
import { Shell } from './views/shell';

showSafeText();
applyTheme(readTheme());
followAddressBar();
const root = document.getElementById('app');
if (root !== null) {
  render(<Shell />, root);
}
