// SPDX-License-Identifier: MIT
// module_table: the part of module_table.h that does not depend on who lists the modules:
// headers, tables and notes of a module that was found.
#include "target/unwind/environment/module_table.h"

#include <elf.h>

#include "base/cursor.h"
#include "base/page_alloc.h"

struct bytes module_table_headers(uint64_t start)
{
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)start;
    const uint8_t *ident = elf->e_ident;
    bool is_elf = ident[EI_MAG0] == ELFMAG0 && ident[EI_MAG1] == ELFMAG1 &&
                  ident[EI_MAG2] == ELFMAG2 && ident[EI_MAG3] == ELFMAG3 &&
                  ident[EI_CLASS] == ELFCLASS64;
    if (!is_elf || elf->e_phentsize != sizeof(Elf64_Phdr)) {
        return (struct bytes){NULL, 0};
    }
    uint64_t len = (uint64_t)elf->e_phnum * sizeof(Elf64_Phdr);
    if (elf->e_phoff > PAGE_BYTES || len > PAGE_BYTES - elf->e_phoff) {
        return (struct bytes){NULL, 0};
    }
    return (struct bytes){(const uint8_t *)elf + elf->e_phoff, (size_t)len};
}

const Elf64_Phdr *module_table_next_header(struct bytes headers, uint32_t type, size_t *index)
{
    const Elf64_Phdr *all = (const Elf64_Phdr *)(const void *)headers.data;
    while (*index < headers.len / sizeof(Elf64_Phdr)) {
        const Elf64_Phdr *header = &all[(*index)++];
        if (header->p_type == type) {
            return header;
        }
    }
    return NULL;
}

// Return the segment of the file's byte that is mapped at `addr`; NULL if there is none.
static const Elf64_Phdr *load_with(const struct module_span *span, uint64_t addr)
{
    size_t index = 0;
    const Elf64_Phdr *load = NULL;
    while ((load = module_table_next_header(span->headers, PT_LOAD, &index)) != NULL) {
        if (addr - span->bias - load->p_vaddr < load->p_filesz) { // wraps around if it is before
            return load;
        }
    }
    return NULL;
}

bool module_table_unwind(const struct module_span *span, struct eh_table *out)
{
    if (span->tables.data != NULL) {
        *out =
            (struct eh_table){.image = {.bytes = span->tables, .addr = (uint64_t)span->tables.data},
                              .hdr_addr = span->hdr_addr};
        return true;
    }
    const Elf64_Phdr *load = load_with(span, span->hdr_addr);
    if (load == NULL) {
        return false;
    }
    const uint64_t start = span->bias + load->p_vaddr;
    *out = (struct eh_table){
        .image = {.bytes = {(const uint8_t *)start, load->p_filesz}, .addr = start},
        .hdr_addr = span->hdr_addr};
    return true;
}

static struct bytes build_id_in_notes(struct bytes notes)
{
    struct cursor c = cursor_over(notes);
    while (cursor_left(&c) > 0) {
        uint32_t name_len = cursor_u32(&c);
        uint32_t data_len = cursor_u32(&c);
        uint32_t type = cursor_u32(&c);
        const uint8_t *name = cursor_take(&c, ((size_t)name_len + 3) & ~(size_t)3);
        const uint8_t *data = cursor_take(&c, ((size_t)data_len + 3) & ~(size_t)3);
        if (c.failed) {
            break;
        }
        if (type == NT_GNU_BUILD_ID && name_len == 4 && name[0] == 'G' && name[1] == 'N' &&
            name[2] == 'U') {
            return (struct bytes){data, data_len};
        }
    }
    return (struct bytes){NULL, 0};
}

struct bytes module_table_build_id(const struct module_span *span)
{
    size_t index = 0;
    const Elf64_Phdr *note = NULL;
    while ((note = module_table_next_header(span->headers, PT_NOTE, &index)) != NULL) {
        const uint64_t start = span->bias + note->p_vaddr;
        const Elf64_Phdr *load = load_with(span, start);
        if (load == NULL || note->p_filesz > load->p_vaddr + load->p_filesz - note->p_vaddr) {
            continue;
        }
        struct bytes found =
            build_id_in_notes((struct bytes){(const uint8_t *)start, note->p_filesz});
        if (found.len > 0) {
            return found;
        }
    }
    return (struct bytes){NULL, 0};
}
