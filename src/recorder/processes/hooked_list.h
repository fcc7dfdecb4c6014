// SPDX-License-Identifier: MIT
// hooked_list: the functions that the agent has hooked in the processes of a recording, and those
// that it could not hook, by module and function.
//
// Bounded: after HOOKED_FUNCTIONS_MAX entries one without a function counts the rest. Owns its
// entries. Context: H, the recorder's main thread. Failure: ERR_NO_MEMORY, ERR_LIMIT of the
// strings.
#pragma once

#include "aggregate/aggregator.h"
#include "attach/attach.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "recording/format/tables.h"

#define HOOKED_FUNCTIONS_MAX 1000u

DEFINE_VEC(rec_hook_vec, struct rec_hook);

// Count `hooks` of one process, whose texts are in `texts`.
enum err hooked_list_add(struct rec_hook_vec *list,
                         struct aggregator *aggregator,
                         const struct attach_hook_vec *hooks,
                         const struct strbuf *texts) MUST_USE;

// Append one line for each module: "malloc, free of '/usr/lib/libc.so.6' (libc)".
void hooked_list_describe(const struct attach_hook_vec *hooks,
                          const struct strbuf *texts,
                          struct strbuf *out);
