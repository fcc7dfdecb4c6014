// SPDX-License-Identifier: MIT
// allocator_options: the user's own allocation functions, by --allocator or by [record] in the file
// cairn.toml of the working directory:  allocator = "malloc=my_alloc,free=my_free".
//
// The option wins. Context: H, one thread. Owns nothing.
#pragma once

#include "base/err.h"
#include "inject/allocators/allocator_names.h"

// `option` is the option's value, or NULL. ERR_INVALID with a sentence for malformed names and a
// malformed file, ERR_NO_MEMORY.
enum err allocator_options_read(const char *option,
                                struct allocator_name_vec *out,
                                struct err_info *info) MUST_USE;
