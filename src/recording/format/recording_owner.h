// SPDX-License-Identifier: MIT
// recording_owner: the memory of a recording that owns its arrays.
//
// It is separate from the tables: a caller may point a table elsewhere, and recording_release still
// frees what was allocated. Only the reader and the builder use its fields. Every array comes from
// malloc or is NULL. Context: H.
#pragma once

#include "recording/format/tables.h"

struct recording_owner {
    char *string_data;
    uint64_t *string_offsets;
#define X(type, name, count) struct type *name;
    REC_TABLES(X)
#undef X
};

// Return NULL if memory is short.
struct recording_owner *recording_owner_new(void);

// Free the arrays and the owner. Accepts NULL.
void recording_owner_free(struct recording_owner *owner);
