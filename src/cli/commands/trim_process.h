// SPDX-License-Identifier: MIT
// trim_process: lets a process give free memory back, and prints what came of it; for `cairn trim`
// and `cairn ctl FILE trim`. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define TRIM_PATIENCE_MS_BY_DEFAULT 5000

// Do so for process `pid`, whose thread is looked for as long as `patience_ms`. Prints as text, or
// as a JSON object. The errors of process_trim_run.
enum err trim_process(int pid, uint64_t patience_ms, bool use_json, struct err_info *info) MUST_USE;
