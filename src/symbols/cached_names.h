// SPDX-License-Identifier: MIT
// cached_names: what one file of the name cache holds: a module's answers, by address.
//
//   offset  size                                          docs/format/name-cache.md
//        0     8  "cairnnam"
//        8     4  version
//       12     4  count of places
//       16     8  XXH3 of all that follows
//       24     4  count of frames
//       28     4  bytes of text
//       32    12  reader, module, source: where these texts begin
//       44     4  zero
//       48        places, ascending: address (8), start of a function without name (8),
//                 first frame (4), count of frames (4)
//                 frames: function, file (where the text begins), line, 1 if inlined (4 each)
//                 text: each ended by a zero; the first is ""
//
// `reader` names the program that looked the names up, and what of: another build of it may know
// better, so that its answers are not taken over, nor are those of another module. All numbers are
// little-endian. The bytes are somebody else's until cached_names_parse has said yes: then every
// number in them is within its bounds. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/text/strbuf.h"
#include "symbols/symbolizer.h"

enum {
    CACHED_PLACES_MAX = 1 << 16, // of one module; what is more is not kept
    CACHED_BYTES_MAX = 8 << 20,  // of one file
};

// A parsed file. Borrows the bytes.
struct cached_names {
    const uint8_t *places;
    const uint8_t *frames;
    const char *text;
    uint32_t place_count;
    uint32_t frame_count;
    const char *reader;
    const char *module; // path of the module that was first asked for; for people
    const char *source; // the file that the names came from
};

// ERR_CORRUPT if anything is not as above, ERR_UNSUPPORTED for another version.
enum err cached_names_parse(struct bytes file, struct cached_names *out) MUST_USE;

struct cached_place {
    uint64_t address;
    uint64_t function_start; // as in symbol_chain
    uint32_t first;          // of its frames
    uint32_t count;
};

struct cached_frame {
    const char *function;
    const char *file;
    uint32_t line;
    bool is_inlined;
};

// `index` is below place_count or frame_count.
struct cached_place cached_names_place(const struct cached_names *names, uint32_t index);
struct cached_frame cached_names_frame(const struct cached_names *names, uint32_t index);

// The answer for `address`; false if there is none. An answer without frames is one, too.
bool cached_names_find(const struct cached_names *names,
                       uint64_t address,
                       struct cached_place *out);

// New answers, whose texts are ids of a string table.
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

// Appends the file that holds `old` (NULL: nothing) and `fresh`, which wins and is sorted here; if
// both have too many places, `fresh` alone. ERR_NO_MEMORY, ERR_LIMIT (too many bytes).
enum err cached_names_write(const struct cached_names *old,
                            struct fresh_names *fresh,
                            const struct string_table *strings,
                            const struct cached_names_labels *labels,
                            struct strbuf *out) MUST_USE;
