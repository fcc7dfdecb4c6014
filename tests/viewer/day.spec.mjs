// SPDX-License-Identifier: MIT
// What `make test` looks at in a browser: these files in one process, with one browser. A line of the output has the
// name of the file's `describe`, and each file is an entry of `make nightly` by itself.
import './hostile.spec.mjs';
import './interaction.spec.mjs';
import './numbers.spec.mjs';
import './report.spec.mjs';
import './subject.spec.mjs';
