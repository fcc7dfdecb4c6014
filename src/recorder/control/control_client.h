// SPDX-License-Identifier: MIT
// control_client: finds the recorder of a recording and sends it a request. See control_socket.h.
//
// A recording has three names: its file, which need not exist yet, the recorder's process id, and
// the process id of any recorded process.
// All recorders are asked for their recording at once. One that has no socket yet, because it has
// just been started, is waited for.
// Context: H; any thread. Blocks until the reply arrives, at most CONTROL_PATIENCE_MS.
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "host/text/strbuf.h"

#define CONTROL_PATIENCE_MS 60000

// Send `word`, and `text` unless it is NULL, to the recorder of `recording`, and append the reply
// to `reply`. ERR_NOT_FOUND: no recorder has this recording; ERR_INVALID: the recorder refused,
// `info` has its reason; ERR_DEAD: it does not answer.
enum err control_ask(const char *recording,
                     const char *word,
                     const char *text,
                     struct strbuf *reply,
                     struct err_info *info) MUST_USE;

// Do the same with the recorder whose process id is `recorder`, and ask no other. ERR_NOT_FOUND: it
// takes no requests, because it has not begun, has ended, or writes its last file.
enum err control_ask_recorder(pid_t recorder,
                              const char *word,
                              const char *text,
                              struct strbuf *reply,
                              struct err_info *info) MUST_USE;

// Send such a request and do not wait for its reply. The caller owns *out_fd.
enum err control_begin(pid_t recorder,
                       const char *word,
                       const char *text,
                       int *out_fd,
                       struct err_info *info) MUST_USE;

// Append the reply to it. ERR_NOT_FOUND: there is none yet; ERR_DEAD: there will be none, as the
// recorder refused, has ended, or gave our place to another client.
enum err control_take(int fd, struct strbuf *reply) MUST_USE;
