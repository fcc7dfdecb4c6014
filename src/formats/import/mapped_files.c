// SPDX-License-Identifier: MIT
#include "formats/import/mapped_files.h"

#include "base/order.h"
#include "base/search.h"

enum {
    FIXED_BELOW = 0x10000000, // limit for the address of an executable that was linked for it
};

enum err mapped_files_add(struct mapped_file_vec *files,
                          struct import *import,
                          struct bytes path,
                          struct mapped_file range,
                          uint64_t offset)
{
    const struct mapped_file *last = files->len > 0 ? &files->items[files->len - 1] : NULL;
    range.module = REC_NONE;
    if (path.len > 0) {
        TRY(import_module(import, path, &range.module));
    }
    bool is_further = last != NULL && last->module == range.module && offset > 0;
    range.base = is_further ? last->base : range.start - offset;
    range.base = range.start < FIXED_BELOW ? 0 : range.base;
    return mapped_file_vec_push(files, range);
}

static int compare_starts(const void *left, const void *right)
{
    const struct mapped_file *a = left;
    const struct mapped_file *b = right;
    return order_u64(a->start, b->start);
}

void mapped_files_sort(struct mapped_file_vec *files)
{
    mapped_file_vec_sort(files, compare_starts);
}

const struct mapped_file *mapped_files_find(const struct mapped_file_vec *files,
                                            uint64_t return_address)
{
    const struct mapped_file *items = files->items;
    const size_t next = FIRST_WHERE(at, files->len, items[at].start >= return_address);
    const struct mapped_file *found = next > 0 ? &items[next - 1] : NULL;
    return found != NULL && return_address <= found->end ? found : NULL;
}
