// SPDX-License-Identifier: MIT
#include "aggregate/rows/realloc_table.h"

#include <string.h>

#include "base/minmax.h"
#include "base/order.h"

void realloc_table_release(struct realloc_table *table)
{
    rec_realloc_vec_release(&table->entries);
    map_u64_release(&table->places);
}

// Add what `more` counts to its row.
static enum err add_realloc(struct realloc_table *table, const struct rec_realloc *more)
{
    uint32_t place;
    TRY(rec_realloc_vec_reserve(&table->entries, 1));
    TRY(map_u64_number(&table->places, more->row, table->entries.len, &place));
    if (place == table->entries.len) {
        table->entries.items[table->entries.len++] = *more;
        return ERR_OK;
    }
    struct rec_realloc *entry = table->entries.items + place;
    entry->reallocs += more->reallocs;
    entry->moved_bytes = capped_sum_u64(entry->moved_bytes, more->moved_bytes);
    entry->grown_bytes = capped_sum_u64(entry->grown_bytes, more->grown_bytes);
    entry->largest_bytes = max_u64(entry->largest_bytes, more->largest_bytes);
    return ERR_OK;
}

enum err realloc_table_add(struct realloc_table *table,
                           uint32_t row,
                           uint64_t old_bytes,
                           uint64_t size_bytes)
{
    return add_realloc(table, &(struct rec_realloc){.row = row,
                                                    .reallocs = 1,
                                                    .moved_bytes = old_bytes,
                                                    .grown_bytes = size_bytes - old_bytes,
                                                    .largest_bytes = size_bytes});
}

// An entry only moves to an earlier place, so this works in place.
enum err realloc_table_renumber(struct realloc_table *table, const uint32_t *rows)
{
    const size_t count = table->entries.len;
    map_u64_clear(&table->places);
    table->entries.len = 0;
    for (size_t i = 0; i < count; i++) {
        struct rec_realloc entry = table->entries.items[i];
        entry.row = rows[entry.row];
        TRY(add_realloc(table, &entry));
    }
    return ERR_OK;
}

static int compare_reallocs(const void *left, const void *right)
{
    const struct rec_realloc *a = left;
    const struct rec_realloc *b = right;
    return order_u64(a->row, b->row);
}

enum err realloc_table_collect(const struct realloc_table *table, struct rec_realloc_vec *out)
{
    if (table->entries.len == 0) {
        return ERR_OK;
    }
    TRY(rec_realloc_vec_resize(out, table->entries.len));
    memcpy(out->items, table->entries.items, out->len * sizeof(*out->items));
    rec_realloc_vec_sort(out, compare_reallocs);
    return ERR_OK;
}
