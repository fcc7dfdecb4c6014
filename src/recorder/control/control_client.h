// SPDX-License-Identifier: MIT
// control_client: finds the recorder of a recording and asks it. See control_socket.h.
//
// A recording is named by its file, which need not be there yet, by the recorder's process id or by
// that of any process that is recorded. Context: H. Blocks until the reply is there, or for
// CONTROL_PATIENCE_MS.
#pragma once

#include "base/err.h"
#include "host/text/strbuf.h"

#define CONTROL_PATIENCE_MS 60000

// Sends `word`, and `text` unless it is NULL, to the recorder of `recording`, and appends what it
// says to `reply`. ERR_NOT_FOUND: nobody records it; ERR_INVALID: the recorder refused, `info` has
// its words; ERR_DEAD: it does not answer.
enum err control_ask(const char *recording,
                     const char *word,
                     const char *text,
                     struct strbuf *reply,
                     struct err_info *info) MUST_USE;
