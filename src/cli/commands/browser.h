// SPDX-License-Identifier: MIT
// browser: opens an address on the user's desktop, if there is one. Context: H.
#pragma once

#include <stdbool.h>

// Return whether a browser can be opened: there is a display, and xdg-open exists.
bool browser_is_there(void);

// Start the browser at `url` without waiting for it. Return false on failure.
bool browser_open(const char *url);
