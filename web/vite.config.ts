// Builds dist/index.html and dist/assets/*: nothing inline, nothing from elsewhere, because the server's
// content security policy forbids both. The names hold no hash, so that a new bundle changes files of the
// repository and does not rename them; the server tells a browser by an ETag what has changed.
import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/viewer.js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/[name][extname]',
      },
    },
  },
});
