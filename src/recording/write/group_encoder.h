// SPDX-License-Identifier: MIT
// group_encoder: encode the entries of a table as the payload of a chunk, column by column.
//
// A *group* is the entries of one chunk. It borrows them.
// Memory: 24 bytes for each entry of the largest group. Context: H; each thread has its own
// encoder.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "recording/format/schema.h"

struct entry_group {
    const struct rec_table *table;
    const struct recording *recording; // recording whose rows predict shares; NULL: no prediction
    const char *entries;
    uint64_t first; // index of the first entry
    size_t count;
};

// Zeroed is valid.
struct group_encoder {
    struct u64_vec values;    // a column
    struct u64_vec reference; // its reference column
    struct u64_vec shares;    // its predicted bytes
};

void group_encoder_release(struct group_encoder *encoder);

// Write the payload to `out`, which is cleared first.
enum err group_encode(struct group_encoder *encoder,
                      const struct entry_group *group,
                      struct strbuf *out) MUST_USE;

// Set *out_count to the number of strings from `first` that fill one chunk, at most `max`.
// Strings longer than GROUP_MAX_STRING_BYTES are cut. ERR_CORRUPT: string number first + *out_count
// is not terminated.
enum err group_measure_strings(struct group_encoder *encoder,
                               const struct rec_strings *strings,
                               uint32_t first,
                               size_t max,
                               size_t *out_count) MUST_USE;

// Write the payload of the strings measured last to `out`, which is cleared first. out->failed is
// set if memory was short.
void group_encode_strings(const struct group_encoder *encoder,
                          const struct rec_strings *strings,
                          uint32_t first,
                          struct strbuf *out);

#define GROUP_MAX_STRING_BYTES (8 << 20) // a chunk of one string fits CHUNK_MAX_RAW_BYTES
