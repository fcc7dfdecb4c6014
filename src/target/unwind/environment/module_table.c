// SPDX-License-Identifier: MIT
// module_table: the part of module_table.h that does not depend on who lists the modules:
// headers, tables and notes of a module that was found.
#include "target/unwind/environment/module_table.h"

#include <elf.h>

#include "base/elf_note.h"
#include "base/minmax.h"
#include "base/page_alloc.h"
#include "base/sys.h"

// Whether the headers, `offset` bytes behind the start of the file, are in a segment that is mapped
// as far behind the start of the module.
static bool are_in_segment(struct bytes headers, uint64_t offset)
{
    size_t index = 0;
    const Elf64_Phdr *load = module_table_next_header(headers, PT_LOAD, &index);
    const uint64_t first = load != NULL ? grain_start(load->p_vaddr) : 0;
    for (; load != NULL; load = module_table_next_header(headers, PT_LOAD, &index)) {
        if (offset - load->p_offset < load->p_filesz &&
            load->p_vaddr - first == load->p_offset) { // wraps around if it is before
            return true;
        }
    }
    return false;
}

static bool is_readable(uint64_t start, uint64_t len)
{
    for (uint64_t addr = start; addr - start < len; addr = grain_start(addr) + PAGE_GRAIN) {
        if (!sys_is_readable(addr & ~(uint64_t)7)) {
            return false;
        }
    }
    return true;
}

struct bytes module_table_headers(uint64_t start, uint64_t end)
{
    static const struct bytes none = {NULL, 0};
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)start;
    const uint8_t *ident = elf->e_ident;
    bool is_elf = ident[EI_MAG0] == ELFMAG0 && ident[EI_MAG1] == ELFMAG1 &&
                  ident[EI_MAG2] == ELFMAG2 && ident[EI_MAG3] == ELFMAG3 &&
                  ident[EI_CLASS] == ELFCLASS64;
    if (!is_elf || elf->e_phentsize != sizeof(Elf64_Phdr)) {
        return none;
    }
    const uint64_t len = (uint64_t)elf->e_phnum * sizeof(Elf64_Phdr);
    const uint64_t offset = elf->e_phoff;
    const struct bytes headers = {(const uint8_t *)start + offset, (size_t)len};
    if (offset <= PAGE_GRAIN && len <= PAGE_GRAIN - offset) {
        return headers;
    }
    // BOLT puts them into a segment of its own.
    const bool is_inside =
        offset <= end - start && len <= end - start - offset && offset % _Alignof(Elf64_Phdr) == 0;
    return is_inside && is_readable(start + offset, len) && are_in_segment(headers, offset)
               ? headers
               : none;
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

bool module_table_next_run(struct bytes headers, size_t *index, struct module_run *out)
{
    const Elf64_Phdr *load = module_table_next_header(headers, PT_LOAD, index);
    if (load == NULL) {
        return false;
    }
    *out = (struct module_run){.start = grain_start(load->p_vaddr)};
    for (size_t next = *index;
         load != NULL && (out->end == 0 || grain_start(load->p_vaddr) <= grain_end(out->end));
         load = module_table_next_header(headers, PT_LOAD, &next)) { // by rising address
        out->end = load->p_vaddr + load->p_memsz;
        *index = next;
    }
    return true;
}

bool module_table_narrow(uint64_t pc, struct module_span *span)
{
    size_t index = 0;
    struct module_run run;
    while (module_table_next_run(span->headers, &index, &run)) {
        if (pc - span->bias - run.start < run.end - run.start) { // wraps around if it is before
            span->start = max_u64(span->start, span->bias + run.start);
            span->end = min_u64(span->end, span->bias + run.end);
            return pc - span->start < span->end - span->start;
        }
    }
    return false;
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

static struct eh_image image_of(const struct module_span *span, const Elf64_Phdr *load)
{
    const uint64_t start = span->bias + load->p_vaddr;
    return (struct eh_image){.bytes = {(const uint8_t *)start, load->p_filesz}, .addr = start};
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
    *out = (struct eh_table){.image = image_of(span, load), .hdr_addr = span->hdr_addr};
    const Elf64_Phdr *frames = load_with(span, eh_first(out));
    if (frames != NULL && frames != load && (frames->p_flags & PF_R) != 0) {
        out->frames = image_of(span, frames);
    }
    return true;
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
            elf_note_build_id((struct bytes){(const uint8_t *)start, note->p_filesz});
        if (found.len > 0) {
            return found;
        }
    }
    return (struct bytes){NULL, 0};
}
