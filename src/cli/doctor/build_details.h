// SPDX-License-Identifier: MIT
// build_details: what this cairn is and what it could do here, for `cairn version --verbose`: the
// compiler, the libraries and their versions, the kernel, and what it may attach to. Context: H.
#pragma once

// Print the lines "NAME   VALUE" to stdout; the caller checks stdout.
void build_details_print(void);
