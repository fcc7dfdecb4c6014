// SPDX-License-Identifier: MIT
// http_library: loads libmicrohttpd when the server starts.
//
// The library brings gnutls and nine others, whose loading takes 2 ms of processor time. Only the
// server needs them, and a recorded run may last 10 ms. So cairn is not linked with the library;
// http_library.c defines the functions that the server calls, and forwards them.
// Context: H. Thread-safe after http_library_load has succeeded.
#pragma once

#include "base/err.h"

// Load the library, once. Call this before any other function of libmicrohttpd.
// ERR_IO: it cannot be loaded; `info` says why.
enum err http_library_load(struct err_info *info) MUST_USE;
