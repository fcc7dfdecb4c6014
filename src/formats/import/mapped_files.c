// SPDX-License-Identifier: MIT
// mapped_files: see mapped_files.h.
#include "formats/import/mapped_files.h"

#include "base/order.h"
#include "base/search.h"

enum {
    FIXED_BELOW = 0x10000000, // limit for the address of an executable that was linked for it
};

void mapped_files_release(struct mapped_files *files)
{
    mapped_file_vec_release(&files->items);
    map_u64_release(&files->module_of);
}

static MUST_USE enum err
find_module(struct mapped_files *files, struct import *import, struct bytes path, uint32_t *out)
{
    struct recording_builder *b = import->b;
    rec_string name;
    TRY(import_string(import, path, &name));
    const uint32_t *known = map_u64_find(&files->module_of, name);
    if (known != NULL) {
        *out = *known;
        return ERR_OK;
    }
    *out = (uint32_t)b->modules.len;
    TRY(modules_vec_push(&b->modules, (struct rec_module){.path = name}));
    return map_u64_put(&files->module_of, name, *out);
}

enum err mapped_files_add(struct mapped_files *files,
                          struct import *import,
                          struct bytes path,
                          struct mapped_file range,
                          uint64_t offset)
{
    const struct mapped_file *last =
        files->items.len > 0 ? &files->items.items[files->items.len - 1] : NULL;
    range.module = REC_NONE;
    if (path.len > 0) {
        TRY(find_module(files, import, path, &range.module));
    }
    bool is_further = last != NULL && last->module == range.module && offset > 0;
    range.base = is_further ? last->base : range.start - offset;
    range.base = range.start < FIXED_BELOW ? 0 : range.base;
    return mapped_file_vec_push(&files->items, range);
}

static int compare_starts(const void *left, const void *right)
{
    const struct mapped_file *a = left;
    const struct mapped_file *b = right;
    return order_u64(a->start, b->start);
}

void mapped_files_sort(struct mapped_files *files)
{
    mapped_file_vec_sort(&files->items, compare_starts);
}

const struct mapped_file *mapped_files_find(const struct mapped_files *files,
                                            uint64_t return_address)
{
    const struct mapped_file *items = files->items.items;
    const size_t next = FIRST_WHERE(at, files->items.len, items[at].start >= return_address);
    const struct mapped_file *found = next > 0 ? &items[next - 1] : NULL;
    return found != NULL && return_address <= found->end ? found : NULL;
}

uint64_t mapped_files_bytes(const struct mapped_files *files)
{
    return files->items.cap * sizeof(struct mapped_file);
}
