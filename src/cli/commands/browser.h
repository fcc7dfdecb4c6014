// SPDX-License-Identifier: MIT
// browser: opening an address on the user's desktop, if there is one. Context: H.
#pragma once

#include <stdbool.h>

// Whether there is a desktop to open anything on: a display, and xdg-open.
bool browser_is_there(void);

// Starts the browser at `url` and does not wait for it. False if that failed.
bool browser_open(const char *url);
