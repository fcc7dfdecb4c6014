// SPDX-License-Identifier: MIT
#include "inject/agent_image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent_image_arch.h"
#include "base/page.h"

#define SPAN_MAX ((uint64_t)64 << 20)

void agent_image_release(struct agent_image *image)
{
    free(image->memory);
    *image = (struct agent_image){0};
}

// Copy `len` bytes of the file at `offset`. Return false if it has fewer.
static bool copy_out(struct bytes file, uint64_t offset, void *out, uint64_t len)
{
    if (offset > file.len || len > file.len - offset) {
        return false;
    }
    memcpy(out, file.data + offset, len);
    return true;
}

// Copy entry `index` of a table at `offset`.
static bool copy_entry(struct bytes file, uint64_t offset, uint64_t index, void *out, size_t len)
{
    return index < file.len && offset <= file.len && copy_out(file, offset + index * len, out, len);
}

static bool copy_header(struct bytes file, Elf64_Ehdr *out)
{
    return copy_out(file, 0, out, sizeof(*out)) && memcmp(out->e_ident, ELFMAG, SELFMAG) == 0 &&
           out->e_ident[EI_CLASS] == ELFCLASS64 && out->e_machine == AGENT_IMAGE_MACHINE &&
           out->e_type == ET_DYN && out->e_phentsize == sizeof(Elf64_Phdr) &&
           out->e_shentsize == sizeof(Elf64_Shdr);
}

static bool add_segment(struct agent_image *image, const Elf64_Phdr *load, uint64_t page_bytes)
{
    if (image->segment_count == AGENT_SEGMENTS_MAX || load->p_vaddr > SPAN_MAX ||
        load->p_memsz > SPAN_MAX || load->p_filesz > load->p_memsz ||
        page_start_of(load->p_vaddr, page_bytes) < image->span) {
        return false; // too large, or not on pages of its own
    }
    const struct agent_segment segment = {
        .start = page_start_of(load->p_vaddr, page_bytes),
        .end = page_end_of(load->p_vaddr + load->p_memsz, page_bytes),
        .prot = ((load->p_flags & PF_R) != 0 ? PROT_READ : 0) |
                ((load->p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
                ((load->p_flags & PF_X) != 0 ? PROT_EXEC : 0),
    };
    image->segments[image->segment_count++] = segment;
    image->span = segment.end;
    return true;
}

static bool read_segments(struct agent_image *image, uint64_t page_bytes)
{
    Elf64_Ehdr header;
    if (!copy_header(image->file, &header)) {
        return false;
    }
    for (uint64_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr load;
        if (!copy_entry(image->file, header.e_phoff, i, &load, sizeof(load)) ||
            (load.p_type == PT_LOAD && load.p_memsz != 0 &&
             !add_segment(image, &load, page_bytes))) {
            return false;
        }
    }
    return image->span != 0;
}

static bool fill_memory(struct agent_image *image)
{
    Elf64_Ehdr header;
    bool is_whole = copy_header(image->file, &header);
    for (uint64_t i = 0; is_whole && i < header.e_phnum; i++) {
        Elf64_Phdr load;
        is_whole =
            copy_entry(image->file, header.e_phoff, i, &load, sizeof(load)) &&
            (load.p_type != PT_LOAD ||
             copy_out(image->file, load.p_offset, image->memory + load.p_vaddr, load.p_filesz));
    }
    return is_whole;
}

// Call `visit` with each relocation. Return false if a table is damaged or `visit` returns false.
static bool each_relocation(struct agent_image *image,
                            uint64_t addr,
                            bool (*visit)(struct agent_image *image,
                                          uint64_t addr,
                                          const Elf64_Rela *relocation))
{
    Elf64_Ehdr header;
    bool is_valid = copy_header(image->file, &header);
    for (uint64_t i = 0; is_valid && i < header.e_shnum; i++) {
        Elf64_Shdr section;
        is_valid = copy_entry(image->file, header.e_shoff, i, &section, sizeof(section));
        if (!is_valid || section.sh_type != SHT_RELA || (section.sh_flags & SHF_ALLOC) == 0) {
            continue;
        }
        for (uint64_t j = 0; is_valid && j < section.sh_size / sizeof(Elf64_Rela); j++) {
            Elf64_Rela relocation;
            is_valid =
                copy_entry(image->file, section.sh_offset, j, &relocation, sizeof(relocation)) &&
                visit(image, addr, &relocation);
        }
    }
    return is_valid;
}

static bool check_relocation(struct agent_image *image, uint64_t addr, const Elf64_Rela *relocation)
{
    (void)addr; // of no interest for the check
    return ELF64_R_TYPE(relocation->r_info) == AGENT_IMAGE_RELATIVE &&
           relocation->r_offset <= image->span - sizeof(uint64_t);
}

static bool apply_relocation(struct agent_image *image, uint64_t addr, const Elf64_Rela *relocation)
{
    put_u64(image->memory + relocation->r_offset, addr + (uint64_t)relocation->r_addend);
    return true;
}

enum err agent_image_init(struct agent_image *image,
                          struct bytes file,
                          uint64_t page_bytes,
                          struct err_info *info)
{
    CLEANUP(agent_image_release) struct agent_image made = {.file = file};
    if (!read_segments(&made, page_bytes)) {
        return err_set(info, ERR_INVALID, "the agent is not a shared object for " AGENT_IMAGE_NAME);
    }
    made.memory = calloc(1, made.span);
    if (made.memory == NULL) {
        return ERR_NO_MEMORY;
    }
    if (!fill_memory(&made) || !each_relocation(&made, 0, check_relocation)) {
        return err_set(info, ERR_INVALID, "the agent has relocations of an unknown kind");
    }
    *image = made;
    made = (struct agent_image){0};
    return ERR_OK;
}

void agent_image_relocate(struct agent_image *image, uint64_t addr)
{
    (void)each_relocation(image, addr, apply_relocation); // were checked
}

static bool find_in_section(struct bytes file,
                            const Elf64_Ehdr *header,
                            const Elf64_Shdr *symbols,
                            const char *name,
                            uint64_t *out)
{
    Elf64_Shdr strings;
    if (!copy_entry(file, header->e_shoff, symbols->sh_link, &strings, sizeof(strings))) {
        return false;
    }
    const size_t len = strlen(name) + 1;
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        if (!copy_entry(file, symbols->sh_offset, i, &symbol, sizeof(symbol))) {
            return false;
        }
        const uint64_t at = strings.sh_offset + symbol.st_name;
        if (symbol.st_shndx != SHN_UNDEF && at < file.len && file.len - at >= len &&
            memcmp(file.data + at, name, len) == 0) {
            *out = symbol.st_value;
            return true;
        }
    }
    return false;
}

uint64_t agent_image_symbol(struct bytes file, const char *name)
{
    Elf64_Ehdr header;
    uint64_t offset = 0;
    const bool is_valid = copy_header(file, &header);
    for (uint64_t i = 0; is_valid && i < header.e_shnum; i++) {
        Elf64_Shdr section;
        if (copy_entry(file, header.e_shoff, i, &section, sizeof(section)) &&
            section.sh_type == SHT_DYNSYM &&
            find_in_section(file, &header, &section, name, &offset)) {
            break;
        }
    }
    return offset;
}
