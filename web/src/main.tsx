// Starts the page: the theme, the address, and the shell.
import { options, render } from 'preact';
import './views/parts/tokens.css';
import { inReport } from './api/report-file';
import { takeToken } from './api/token';
import { followAddressBar } from './state/app-state';
import { applyTheme, readTheme } from './state/theme';
import { showSafeText } from './views/parts/safe-text';
import { Shell } from './views/shell';
import { StorePage } from './views/store/store-page';
// The last of the styles: it overrides those of the views.
import './views/parts/print.css';
import './views/parts/forced-colours.css';

// Effects run before the page is painted. So a table is never shown wider than its place, and a request that follows
// from an answer is sent before the page shows that answer.
options.requestAnimationFrame = queueMicrotask;
showSafeText();
if (!inReport()) {
  takeToken();
}
applyTheme(readTheme());
followAddressBar();
const root = document.getElementById('app');
if (root !== null) {
  render(!inReport() && location.hash.startsWith('#/store') ? <StorePage /> : <Shell />, root);
}
