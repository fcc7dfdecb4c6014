// SPDX-License-Identifier: MIT
// cached_names: one file of the name cache: the answers for one module, by address.
//
//   offset  size                                          docs/format/name-cache.md
//        0     8  "cairnnam"
//        8     4  version
//       12     4  count of places
//       16     8  XXH3 of everything after it
//       24     4  count of frames
//       28     4  bytes of text
//       32    12  reader, module, source: offsets of these texts
//       44     4  zero
//       48        places, ascending: address (8), start of a function without name (8),
//                 first frame (4), count of frames (4)
//                 frames: function, file (offset of its text), line, 1 if inlined (4 each)
//                 text: each ended by a zero; the first is ""
//
// `reader` identifies the cairn build that looked up the names, and the module. A reader ignores a
// file by another build, because builds may differ in their answers, or for another module. All
// numbers are little-endian. The file is hostile until cached_names_parse succeeds; then every
// number in it is within its bounds. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/text/strbuf.h"
#include "symbols/names/symbol_answer.h"

enum {
    CACHED_PLACES_MAX = 1 << 16, // per module; further ones are not stored
    CACHED_BYTES_MAX = 8 << 20,  // per file
};

// A parsed file. Borrows the bytes.
struct cached_names {
    const uint8_t *places;
    const uint8_t *frames;
    const char *text;
    uint32_t place_count;
    uint32_t frame_count;
    const char *reader;
    const char *module; // path of the module in the first query; for display
    const char *source; // file with the names
};

// Check and parse `file`. ERR_CORRUPT if it breaks the format, ERR_UNSUPPORTED for another version.
enum err cached_names_parse(struct bytes file, struct cached_names *out) MUST_USE;

struct cached_place {
    uint64_t address;
    uint64_t function_start; // as in symbol_chain
    uint32_t first;          // index of its first frame
    uint32_t count;
};

struct cached_frame {
    const char *function;
    const char *file;
    uint32_t line;
    bool is_inlined;
};

// Return a place or a frame. `index` must be below place_count or frame_count.
struct cached_place cached_names_place(const struct cached_names *names, uint32_t index);
struct cached_frame cached_names_frame(const struct cached_names *names, uint32_t index);

// Find the answer for `address`; return false if the file has none. An answer may have no frames.
bool cached_names_find(const struct cached_names *names,
                       uint64_t address,
                       struct cached_place *out);

// New answers. Their texts are ids of a string table.
struct fresh_place {
    uint64_t address;
    struct symbol_chain chain; // in frames
};

DEFINE_VEC(fresh_place_vec, struct fresh_place);

struct fresh_names {
    struct fresh_place_vec places;  // owned
    struct symbol_frame_vec frames; // owned
};

void fresh_names_release(struct fresh_names *fresh);
enum err fresh_names_add(struct fresh_names *fresh,
                         uint64_t address,
                         uint64_t function_start,
                         const struct symbol_frame *frames,
                         uint32_t count) MUST_USE;

struct cached_names_labels {
    const char *reader;
    const char *module;
    const char *source;
};

// Append a file with `old` (NULL: nothing) and `fresh` to `out`. Where both have an answer, `fresh`
// wins. If together they have too many places, write `fresh` alone. Sorts `fresh`. ERR_NO_MEMORY,
// ERR_LIMIT (too many bytes).
enum err cached_names_write(const struct cached_names *old,
                            struct fresh_names *fresh,
                            const struct string_table *strings,
                            const struct cached_names_labels *labels,
                            struct strbuf *out) MUST_USE;
