// SPDX-License-Identifier: MIT
#include "inject/process/module_headers.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/elf_note.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "machine_arch.h"

enum {
    SEGMENTS_MAX = 128,
    NOTE_BYTES_MAX = 4096,
};
#define SIZE_MAX_SANE ((uint64_t)1 << 46) // no segment is larger: user space has 2^47 bytes

struct headers {
    Elf64_Ehdr file;
    Elf64_Phdr segments[SEGMENTS_MAX];
    size_t count;
};

// ERR_NOT_FOUND: they cannot be read. ERR_INVALID: it is no module.
static enum err
read_headers(const struct target_process *target, uint64_t start, struct headers *out)
{
    TRY(target_process_read(target, start, &out->file, sizeof(out->file)));
    const Elf64_Ehdr *file = &out->file;
    if (memcmp(file->e_ident, ELFMAG, SELFMAG) != 0 || file->e_ident[EI_CLASS] != ELFCLASS64 ||
        file->e_ident[EI_DATA] != ELFDATA2LSB || file->e_machine != MACHINE_ELF ||
        file->e_phentsize != sizeof(Elf64_Phdr) || file->e_phnum == 0 ||
        file->e_phnum > SEGMENTS_MAX || file->e_phoff > SIZE_MAX_SANE) {
        return ERR_INVALID;
    }
    out->count = file->e_phnum;
    return target_process_read(target, start + file->e_phoff, out->segments,
                               out->count * sizeof(Elf64_Phdr));
}

static void read_build_id(const struct target_process *target,
                          uint64_t addr,
                          uint64_t len,
                          struct target_module *module)
{
    uint8_t notes[NOTE_BYTES_MAX];
    len = min_u64(len, sizeof(notes));
    if (target_process_read(target, addr, notes, len) != ERR_OK) {
        return;
    }
    const struct bytes id = elf_note_build_id((struct bytes){.data = notes, .len = len});
    if (id.len > 0) {
        module->build_id_len = (uint32_t)min_u64(id.len, sizeof(module->build_id));
        memcpy(module->build_id, id.data, module->build_id_len);
    }
}

static void take_load(const Elf64_Phdr *load, struct target_module *module)
{
    const uint64_t start = module->load_bias + load->p_vaddr;
    const uint64_t end = start + load->p_memsz;
    module->end = max_u64(module->end, page_end(end));
    if ((load->p_flags & PF_X) != 0) {
        module->text_start = module->text_end == 0 ? start : min_u64(module->text_start, start);
        module->text_end = max_u64(module->text_end, end);
    }
}

static void take_segment(const struct target_process *target,
                         const Elf64_Phdr *segment,
                         struct target_module *module)
{
    const uint64_t addr = module->load_bias + segment->p_vaddr;
    switch (segment->p_type) {
    case PT_LOAD:
        take_load(segment, module);
        break;
    case PT_NOTE:
        if (module->build_id_len == 0) {
            read_build_id(target, addr, segment->p_memsz, module);
        }
        break;
    case PT_GNU_EH_FRAME:
        module->eh_frame_hdr = addr;
        break;
    case PT_DYNAMIC:
        module->dynamic = addr;
        break;
    case PT_INTERP:
        module->has_interpreter = true;
        break;
    default: // of no interest here
        break;
    }
}

static bool find_bias(const struct headers *headers, uint64_t start, struct target_module *module)
{
    for (size_t i = 0; i < headers->count; i++) {
        const Elf64_Phdr *load = headers->segments + i;
        if (load->p_memsz > SIZE_MAX_SANE || load->p_vaddr > SIZE_MAX_SANE * 2) {
            return false;
        }
        if (load->p_type == PT_LOAD && load->p_offset < page_bytes()) {
            module->load_bias = start - page_start(load->p_vaddr);
            return true;
        }
    }
    return false;
}

static bool is_same_file(const struct target_process *target,
                         const struct target_mapping *one,
                         const struct target_mapping *other)
{
    return one->inode == other->inode && one->device == other->device &&
           target_process_is_path(target, one->path, other->path);
}

// Its text must be executable memory of the same file.
static bool is_loaded(const struct target_process *target,
                      const struct target_mapping *first,
                      const struct target_module *module)
{
    const struct target_mapping *text = target_process_mapping_at(target, module->text_start);
    return module->text_end > module->text_start && text != NULL && (text->prot & PROT_EXEC) != 0 &&
           is_same_file(target, text, first);
}

// Whether a mapping begins a segment of the module.
static bool is_segment(const struct headers *headers,
                       const struct target_mapping *mapping,
                       const struct target_module *module)
{
    for (size_t i = 0; i < headers->count; i++) {
        const Elf64_Phdr *load = headers->segments + i;
        if (load->p_type == PT_LOAD && mapping->file_off == page_start(load->p_offset) &&
            mapping->start == page_start(module->load_bias + load->p_vaddr)) {
            return true;
        }
    }
    return false;
}

// A module ends where another file is mapped, whatever its headers claim, unless more of the module
// follows: a small file may be in the gap between two of its segments.
static void bound_end(const struct target_process *target,
                      size_t index,
                      const struct headers *headers,
                      struct target_module *module)
{
    const struct target_mapping *first = target->mappings.items + index;
    uint64_t end = module->end;
    for (size_t i = index + 1;
         i < target->mappings.len && target->mappings.items[i].start < module->end; i++) {
        const struct target_mapping *mapping = target->mappings.items + i;
        const bool is_of_file = is_same_file(target, mapping, first);
        if (is_of_file && is_segment(headers, mapping, module)) {
            end = module->end;
        } else if (mapping->inode != 0 && !is_of_file) {
            end = min_u64(end, mapping->start);
        }
    }
    module->end = end;
    module->text_end = min_u64(module->text_end, module->end);
}

// Whether executable memory of the same file follows.
static bool has_code(const struct target_process *target, size_t index)
{
    const struct target_mapping *first = target->mappings.items + index;
    const size_t end = min_u64(target->mappings.len, index + (size_t)SEGMENTS_MAX);
    for (size_t i = index; i < end && is_same_file(target, target->mappings.items + i, first);
         i++) {
        if ((first[i - index].prot & PROT_EXEC) != 0) {
            return true;
        }
    }
    return false;
}

// The kernel may map it between two segments of the loader, which leave 60 KiB there on AArch64.
static bool is_vdso(const struct target_process *target, const struct target_mapping *mapping)
{
    return strcmp(target_process_path(target, mapping->path), "[vdso]") == 0;
}

// Errors of read_headers.
static enum err
read_module(const struct target_process *target, size_t index, struct target_module *out)
{
    const struct target_mapping *mapping = target->mappings.items + index;
    struct headers headers;
    *out = (struct target_module){
        .start = mapping->start,
        .path = mapping->path,
        .is_vdso = is_vdso(target, mapping),
    };
    if ((mapping->inode == 0 && !out->is_vdso) || mapping->file_off != 0 ||
        (mapping->prot & PROT_READ) == 0) {
        return ERR_INVALID;
    }
    TRY(read_headers(target, mapping->start, &headers));
    if (!find_bias(&headers, mapping->start, out)) {
        return ERR_INVALID;
    }
    out->headers = mapping->start + headers.file.e_phoff;
    out->header_count = (uint32_t)headers.count;
    for (size_t i = 0; i < headers.count; i++) {
        take_segment(target, headers.segments + i, out);
    }
    bound_end(target, index, &headers, out);
    return is_loaded(target, mapping, out) ? ERR_OK : ERR_INVALID;
}

enum err module_headers_read(const struct target_process *target,
                             struct target_module_vec *out,
                             struct u32_vec *unread,
                             bool *out_has_more)
{
    uint64_t end = 0;                         // of the modules before
    const struct target_mapping *last = NULL; // the first mapping of the one with that end
    for (size_t i = 0; i < target->mappings.len; i++) {
        const struct target_mapping *mapping = target->mappings.items + i;
        struct target_module module;
        if (mapping->start < end && is_same_file(target, mapping, last)) {
            continue; // the data of a small file may be mapped from its beginning too
        }
        const enum err err = read_module(target, i, &module);
        const bool is_unread = err == ERR_NOT_FOUND && has_code(target, i);
        *out_has_more = (err == ERR_OK && out->len == TARGET_MODULES_MAX) ||
                        (is_unread && unread->len == TARGET_UNREAD_MAX);
        if (*out_has_more) {
            return ERR_OK;
        }
        if (err == ERR_OK) {
            TRY(target_module_vec_push(out, module));
            last = module.end > end ? mapping : last;
            end = max_u64(end, module.end);
        } else if (is_unread) {
            TRY(u32_vec_push(unread, module.path));
        }
    }
    return ERR_OK;
}
