// SPDX-License-Identifier: MIT
// build_details: what this cairn is and what it could do here, for `cairn version --verbose`: the
// compiler, the libraries and their versions, the kernel, and whom it may attach to.
// Context: H. Starts a child for a moment, to try whether it may be traced.
#pragma once

// Print the lines "NAME   VALUE" to stdout; the caller checks stdout.
void build_details_print(void);
