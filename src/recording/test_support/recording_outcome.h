// SPDX-License-Identifier: MIT
// recording_outcome: the checksum of all that a recording holds. Context: tests.
#pragma once

#include "base/test_support/changed_bytes.h"
#include "recording/format/schema.h"
#include "recording/format/tables.h"

static inline void outcome_add_recording(struct outcome_sum *sum, const struct recording *r)
{
    for (uint32_t id = 0; id < r->strings.count; id++) {
        const char *text = rec_string_get(r, id);
        outcome_add(sum, text, strlen(text) + 1);
    }
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const struct rec_table *table = &rec_tables[i];
        const uint8_t *items = table->columns != NULL ? rec_table_items(table, r) : NULL;
        const size_t count = table->columns != NULL ? rec_table_count(table, r) : 0;
        for (size_t k = 0; k < count * table->column_count; k++) {
            const uint8_t *entry = items + k / table->column_count * table->entry_bytes;
            outcome_add_number(sum,
                               rec_column_get(&table->columns[k % table->column_count], entry));
        }
        outcome_add_number(sum, count);
    }
}
