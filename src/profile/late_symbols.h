// SPDX-License-Identifier: MIT
// late_symbols: names for frames of a recording that was written without any.
//
// A finished recording holds its symbols and is believed: it may come from another machine. A
// checkpoint has none yet, nor has a raw recording of another tool; theirs are looked up when they
// are opened, from the files that the modules name. The recording itself is not changed.
// Context: H; one thread.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/progress.h"
#include "host/string_table.h"
#include "host/vec.h"
#include "recording/tables.h"
#include "symbols/symbolizer.h"

DEFINE_VEC(symbol_chain_vec, struct symbol_chain);

// What was found out about a module. Ids in late_symbols.texts.
struct late_module {
    uint32_t source;
    uint32_t advice;
};

DEFINE_VEC(late_module_vec, struct late_module);

struct late_symbols {
    struct string_table texts;      // owned
    struct symbol_frame_vec frames; // owned
    struct symbol_chain_vec chains; // owned; by frame of the recording. Empty: nothing was needed
    struct late_module_vec modules; // owned; by module. Empty: the same
};

// Looks up what `recording` lacks; nothing to do is success. `progress` may be NULL. Modules that
// cannot be read are no error. ERR_NO_MEMORY, ERR_LIMIT.
enum err late_symbols_find(const struct recording *recording,
                           struct progress *progress,
                           struct late_symbols *out) MUST_USE;

void late_symbols_release(struct late_symbols *symbols);
