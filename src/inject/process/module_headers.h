// SPDX-License-Identifier: MIT
// module_headers: find the modules among a target's mappings by the ELF headers in its memory.
//
// A module is a mapping of the beginning of a file whose program headers are in memory too, and
// whose executable segment is mapped executable where they say. So data files that happen to be ELF
// files do not count. Headers are copied once; each figure is checked before use.
// Context: H; one thread.
#pragma once

#include "base/err.h"
#include "inject/process/target_process.h"

// Append the modules in the order of their addresses. A module with damaged headers is left out.
// One whose headers cannot be read is left out too, and its path appended to `unread`.
// *out_has_more: there are more than TARGET_MODULES_MAX, or more than TARGET_UNREAD_MAX that cannot
// be read; the search ends there. ERR_NO_MEMORY.
enum err module_headers_read(const struct target_process *target,
                             struct target_module_vec *out,
                             struct u32_vec *unread,
                             bool *out_has_more) MUST_USE;
