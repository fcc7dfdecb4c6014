// SPDX-License-Identifier: MIT
#include "target/unwind/environment/module_copy.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>

#include "base/page_alloc.h"
#include "base/sys.h"

#define NAME_BYTES PAGE_BYTES

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

// Fetch the notes; use the headers in the copy for notes that are not in the image.
static void fetch_notes(const struct module_copy *copy, uint64_t first_vaddr)
{
    const struct bytes *image = &copy->table.image.bytes;
    const struct bytes headers = copy->span.headers;
    Elf64_Phdr *all = (Elf64_Phdr *)(void *)(copy->table.fetched + (headers.data - image->data));
    for (size_t i = 0; i < headers.len / sizeof(*all); i++) {
        const uint64_t offset = all[i].p_vaddr - first_vaddr;
        if (all[i].p_type != PT_NOTE) {
            continue;
        }
        if (offset > image->len || all[i].p_filesz > image->len - offset) {
            all[i].p_type = PT_NULL;
        } else {
            fetch(&copy->table, copy->span.start + offset, all[i].p_filesz);
        }
    }
}

static bool find_first_vaddr(struct bytes headers, uint64_t *out)
{
    const Elf64_Phdr *all = (const Elf64_Phdr *)(const void *)headers.data;
    for (size_t i = 0; i < headers.len / sizeof(*all); i++) {
        if (all[i].p_type == PT_LOAD) {
            *out = all[i].p_vaddr & ~(uint64_t)(PAGE_BYTES - 1);
            return true;
        }
    }
    return false;
}

bool module_copy_describe(struct module_copy *copy, struct bytes *build_id)
{
    const uint64_t start = copy->span.start;
    char *path = copy->table.fetched - NAME_BYTES;
    uint64_t name[2]; // l_addr, l_name
    _Static_assert(offsetof(struct link_map, l_name) == sizeof(name[0]), "the second word");
    if (sys_copy_own(name, copy->span.link_map, sizeof(name)) != sizeof(name) ||
        sys_failed(sys_copy_own(path, name[1], NAME_BYTES - 1))) {
        return false;
    }
    const struct bytes *bytes = &copy->table.image.bytes;
    const uint64_t image = (uint64_t)bytes->data;
    const Elf64_Ehdr *file = (const Elf64_Ehdr *)(const void *)bytes->data;
    fetch(&copy->table, start, PAGE_BYTES);
    fetch(&copy->table, start + file->e_phoff, (uint64_t)file->e_phnum * sizeof(Elf64_Phdr));
    copy->span.headers = module_table_headers(image, image + bytes->len);
    uint64_t first_vaddr = 0;
    if (!find_first_vaddr(copy->span.headers, &first_vaddr)) {
        return false;
    }
    fetch_notes(copy, first_vaddr);
    // A module that the loader still has afterwards was loaded before.
    struct module_span now;
    if (!module_table_find_unread(start, &now) || now.link_map != copy->span.link_map ||
        now.end != copy->span.end) {
        return false;
    }
    copy->span.bias = name[0];
    copy->span.path = path;
    struct module_span of_copy = copy->span;
    of_copy.bias = image - first_vaddr;
    *build_id = module_table_build_id(&of_copy);
    return true;
}
