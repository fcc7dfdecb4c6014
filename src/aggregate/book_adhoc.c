// SPDX-License-Identifier: MIT
// book_adhoc: see the header.
#include "aggregate/book_adhoc.h"

#include "aggregate/book.h"

enum err book_adhoc(struct book *book, struct book_process *process, uint32_t node, uint64_t weight)
{
    const uint32_t *known = map_u64_find(&process->adhoc_rows, node);
    if (known == NULL) {
        if (book->adhoc.len >= REC_NONE) {
            return ERR_LIMIT;
        }
        const uint32_t row = (uint32_t)book->adhoc.len;
        TRY(rec_adhoc_vec_reserve(&book->adhoc, 1));
        TRY(map_u64_put(&process->adhoc_rows, node, row));
        book->adhoc.items[book->adhoc.len++] =
            (struct rec_adhoc){.process = process->index, .node = node};
        known = map_u64_find(&process->adhoc_rows, node);
    }
    struct rec_adhoc *adhoc = book->adhoc.items + *known;
    adhoc->events++;
    if (__builtin_add_overflow(adhoc->weight, weight, &adhoc->weight)) {
        adhoc->weight = UINT64_MAX;
    }
    return ERR_OK;
}
