// SPDX-License-Identifier: MIT
// recording_owner: the memory of a recording that owns its arrays.
//
// Kept apart from the tables, so that whoever views a recording may point it elsewhere and
// recording_release still frees what was allocated. Reader and builder fill it; nobody else looks
// inside. Every array comes from malloc, or is NULL. Context: H.
#pragma once

#include "recording/format/tables.h"

struct recording_owner {
    char *string_data;
    uint64_t *string_offsets;
#define X(type, name, count) struct type *name;
    REC_TABLES(X)
#undef X
};

// NULL if there is no memory.
struct recording_owner *recording_owner_new(void);

// Frees the arrays and the owner; accepts NULL.
void recording_owner_free(struct recording_owner *owner);
