// SPDX-License-Identifier: MIT
// group_encoder: the entries of a table as the payload of a chunk, column by column.
//
// A *group* is what goes into one chunk. It says where its entries lie and does not own them.
// Memory: 24 bytes an entry of the largest group. Context: H; each thread has an encoder of its
// own. Failure: ERR_NO_MEMORY.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "recording/format/schema.h"

struct entry_group {
    const struct rec_table *table;
    const struct recording *recording; // whose rows predict shares; NULL: nothing does
    const char *entries;
    uint64_t first; // number of the first one
    size_t count;
};

// Zeroed is valid.
struct group_encoder {
    struct u64_vec values;    // a column
    struct u64_vec reference; // the column that it is compared with
    struct u64_vec shares;    // what it is predicted to be
};

void group_encoder_release(struct group_encoder *encoder);

// Puts the payload in `out`, which is cleared.
enum err group_encode(struct group_encoder *encoder,
                      const struct entry_group *group,
                      struct strbuf *out) MUST_USE;

// How many strings from `first` make one chunk, at most `max`, into *out_count. ERR_LIMIT: string
// number first + *out_count is not terminated or longer than GROUP_MAX_STRING_BYTES.
enum err group_measure_strings(struct group_encoder *encoder,
                               const struct rec_strings *strings,
                               uint32_t first,
                               size_t max,
                               size_t *out_count) MUST_USE;

// Puts the payload of the strings that were measured last in `out`, which is cleared; out->failed
// says if there was no memory.
void group_encode_strings(const struct group_encoder *encoder,
                          const struct rec_strings *strings,
                          uint32_t first,
                          struct strbuf *out);

#define GROUP_MAX_STRING_BYTES (8 << 20) // so that a chunk of one is within CHUNK_MAX_RAW_BYTES
