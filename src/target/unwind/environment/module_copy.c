// SPDX-License-Identifier: MIT
#include "target/unwind/environment/module_copy.h"

#include <elf.h>
#include <stddef.h>

#include "base/page_alloc.h"
#include "base/sys.h"

#define NAME_BYTES PAGE_GRAIN

static void fetch(const struct eh_table *table, uint64_t addr, uint64_t len)
{
    const struct eh_image *image = &table->image;
    const uint64_t offset = addr - image->addr;
    if (offset < image->bytes.len) {
        const uint64_t left = image->bytes.len - offset;
        // Unmapped bytes stay zero, or unchanged.
        (void)sys_copy_own(table->fetched + offset, addr, len < left ? len : left);
    }
}

// Whether `len` bytes at `addr` are in the image.
static bool has(const struct eh_image *image, uint64_t addr, uint64_t len)
{
    const uint64_t offset = addr - image->addr;
    return offset <= image->bytes.len && len <= image->bytes.len - offset;
}

bool module_copy_open(const struct module_span *span, struct module_copy *out)
{
    const uint64_t image_bytes = span->end - span->start;
    uint8_t first;
    if (sys_copy_own(&first, span->start, sizeof(first)) != sizeof(first)) {
        return false;
    }
    char *memory = page_alloc(NAME_BYTES + image_bytes);
    if (memory == NULL) {
        return false;
    }
    *out = (struct module_copy){
        .table = {.image = {.bytes = {(const uint8_t *)memory + NAME_BYTES, image_bytes},
                            .addr = span->start},
                  .hdr_addr = span->hdr_addr,
                  .fetch = fetch,
                  .fetched = memory + NAME_BYTES},
        .span = *span};
    return true;
}

void module_copy_close(const struct eh_table *table)
{
    if (table->fetched != NULL) {
        page_free(table->fetched - NAME_BYTES, NAME_BYTES + table->image.bytes.len);
    }
}

bool module_copy_unwind(const struct module_span *span, struct eh_table *out)
{
    if (span->tables.data != NULL) {
        return module_table_unwind(span, out);
    }
    struct module_copy copy;
    if (!module_copy_open(span, &copy)) {
        return false;
    }
    *out = copy.table;
    return true;
}

// Fetch the program headers. Return them in the copy; empty if there are none.
static struct bytes fetch_headers(const struct module_copy *copy)
{
    const struct eh_image *image = &copy->table.image;
    const uint64_t first = (uint64_t)image->bytes.data;
    const Elf64_Ehdr *file = (const Elf64_Ehdr *)first;
    fetch(&copy->table, image->addr, PAGE_GRAIN);
    fetch(&copy->table, image->addr + file->e_phoff, (uint64_t)file->e_phnum * sizeof(Elf64_Phdr));
    return module_table_headers(first, first + image->bytes.len);
}

// Fetch the notes; use the headers in the copy for notes that are not in the image.
static void fetch_notes(const struct module_copy *copy)
{
    const struct eh_image *image = &copy->table.image;
    const struct bytes headers = copy->span.headers;
    Elf64_Phdr *all =
        (Elf64_Phdr *)(void *)(copy->table.fetched + (headers.data - image->bytes.data));
    for (size_t i = 0; i < headers.len / sizeof(*all); i++) {
        const uint64_t addr = copy->span.bias + all[i].p_vaddr;
        if (all[i].p_type != PT_NOTE) {
            continue;
        }
        if (has(image, addr, all[i].p_filesz)) {
            fetch(&copy->table, addr, all[i].p_filesz);
        } else {
            all[i].p_type = PT_NULL;
        }
    }
}

bool module_copy_describe(struct module_copy *copy, struct bytes *build_id)
{
    struct module_span *span = &copy->span;
    if (!module_table_name_unread(span, copy->table.fetched - NAME_BYTES, NAME_BYTES)) {
        return false;
    }
    span->headers = fetch_headers(copy);
    size_t first = 0;
    if (module_table_next_header(span->headers, PT_LOAD, &first) == NULL) {
        return false;
    }
    fetch_notes(copy);
    // A module that is still listed afterwards was loaded before.
    struct module_span now;
    if (!module_table_find_unread(span->start, &now) || now.identity != span->identity ||
        now.end != span->end) {
        return false;
    }
    struct module_span of_copy = *span;
    of_copy.bias += (uint64_t)copy->table.image.bytes.data - span->start;
    *build_id = module_table_build_id(&of_copy);
    return true;
}
