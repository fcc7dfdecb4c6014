// SPDX-License-Identifier: MIT
// frame_texts: the readable names and paths of frames, as ids of a string table.
//
// Most addresses share their names with others, and to demangle is the dearest step of symbolizing.
// So each id is found by the place of its text in a mapped file; these places are valid until the
// file is closed. Hostile input: names and paths of ELF and DWARF; they are cut at a limit.
// Context: H; one thread at a time. Failure: ERR_NO_MEMORY, ERR_LIMIT (string table full).
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/string_table.h"
#include "host/text/strbuf.h"
#include "symbols/dwarf/dwarf_reader.h"

// Zeroed but for `strings` is valid, and empty.
struct frame_texts {
    struct string_table *strings; // borrowed
    struct map_u64 functions;     // ids by place
    struct map_u64 files;
    struct strbuf text; // scratch
};

// Forget the places: their files are closed.
void frame_texts_clear(struct frame_texts *texts);
void frame_texts_release(struct frame_texts *texts);

// Find or add the readable name of a function; 0 for NULL. `name` keeps its address until the texts
// are cleared.
enum err frame_texts_function(struct frame_texts *texts, const char *name, uint32_t *out_id)
    MUST_USE;

// Find or add a function's readable name for a plain name of DWARF, which needs its scopes before
// it.
enum err frame_texts_scoped(struct frame_texts *texts, struct dwarf_frame *frame, uint32_t *out_id)
    MUST_USE;

// Find or add the path of a frame's file, without redundant parts; 0: it has none.
enum err frame_texts_file(struct frame_texts *texts,
                          const struct dwarf_frame *frame,
                          uint32_t *out_id) MUST_USE;
