// SPDX-License-Identifier: MIT
// executed_path: the path by which a running process executes its program.
//
// /proc/PID/exe is the target of a link: redis-check-rdb for redis-server. The kernel keeps the
// name of the exec in the process (AT_EXECFN), which may have changed it or its directory since.
// The name counts if it still leads to the same file. Context: H.
#pragma once

#include "base/err.h"
#include "host/text/strbuf.h"
#include "inject/process/target_process.h"

// Append the path as the process names it; nothing if it cannot be read. ERR_NO_MEMORY only.
enum err executed_path_append(const struct target_process *target, struct strbuf *out) MUST_USE;
