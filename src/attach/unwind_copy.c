// SPDX-License-Identifier: MIT
// unwind_copy: see unwind_copy.h. The formats are those of the Linux Standard Base (core, 10.6).
#include "attach/unwind_copy.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/cursor.h"
#include "base/order.h"
#include "host/containers/vec.h"

enum {
    HEADER_BYTES = 12, // version, three encodings, the address of .eh_frame, the number of pairs
    PAIR_BYTES = 8,
    ENTRY_HEAD_BYTES = 8, // length, and the distance to the CIE
    SECTION_BYTES_MAX = 256 << 20,
    USUAL_ENCODING = DW_EH_PE_pcrel | DW_EH_PE_sdata4,
};

// A pair of the index, from its address.
struct pair {
    int32_t function;
    int32_t entry;
};
DEFINE_VEC(pair_vec, struct pair);

// An entry of .eh_frame.
struct entry {
    size_t at;     // offset of its length
    size_t end;    // offset behind it
    uint32_t back; // 0: a CIE; else the distance from this word to the CIE
};

// Walks over a section.
struct walk {
    struct bytes section;
    size_t next;
    size_t cie; // whose encoding is known
    uint8_t encoding;
};

void unwind_copy_release(struct unwind_copy *copy)
{
    strbuf_release(&copy->section);
}

static bool next_entry(struct walk *walk, struct entry *out)
{
    const struct bytes section = walk->section;
    if (section.len - walk->next < ENTRY_HEAD_BYTES) {
        return false;
    }
    const uint32_t length = get_u32(section.data + walk->next);
    const size_t left = section.len - walk->next - sizeof(length);
    if (length < sizeof(uint32_t) || length > left) {
        return false; // the end, an entry of 64 bits, or damage
    }
    *out = (struct entry){.at = walk->next,
                          .end = walk->next + sizeof(length) + length,
                          .back = get_u32(section.data + walk->next + sizeof(length))};
    walk->next = out->end;
    return true;
}

static size_t size_of(uint8_t encoding)
{
    switch (encoding & 7) {
    case DW_EH_PE_udata2:
        return 2;
    case DW_EH_PE_udata4:
        return 4;
    default: // of dwarf.h, not ours
        return 8;
    }
}

// Return how the addresses of a CIE's functions are encoded.
static uint8_t read_encoding(struct bytes section, size_t cie)
{
    struct cursor c = cursor_over(section);
    (void)cursor_take(&c, cie + ENTRY_HEAD_BYTES);
    const uint8_t version = cursor_u8(&c);
    const char *augmentation = cursor_string(&c);
    (void)cursor_uleb(&c); // alignments and the column of the return address
    (void)cursor_sleb(&c);
    (void)(version == 1 ? cursor_u8(&c) : cursor_uleb(&c));
    if (*augmentation != 'z') {
        return DW_EH_PE_absptr;
    }
    (void)cursor_uleb(&c);
    for (const char *letter = augmentation + 1; *letter != '\0' && !c.failed; letter++) {
        if (*letter == 'R') {
            return cursor_u8(&c);
        }
        if (*letter == 'P') {
            (void)cursor_take(&c, size_of(cursor_u8(&c)));
        } else if (*letter == 'L') {
            (void)cursor_u8(&c);
        }
    }
    return DW_EH_PE_absptr;
}

// Find the next function with a usual address. *out_place: the offset of its address.
static bool next_function(struct walk *walk, struct entry *out, size_t *out_place)
{
    while (next_entry(walk, out)) {
        const size_t word = out->at + sizeof(uint32_t);
        if (out->back == 0 || out->back > word || out->end - out->at < ENTRY_HEAD_BYTES + 8) {
            continue;
        }
        const size_t cie = word - out->back;
        if (walk->encoding == DW_EH_PE_omit || cie != walk->cie) {
            walk->cie = cie;
            walk->encoding = read_encoding(walk->section, cie);
        }
        if (walk->encoding == USUAL_ENCODING) {
            *out_place = word + sizeof(uint32_t);
            return true;
        }
    }
    return false;
}

static struct walk walk_over(struct bytes section)
{
    return (struct walk){.section = section, .encoding = DW_EH_PE_omit};
}

static enum err read_section(Elf *elf, struct unwind_copy *out)
{
    size_t names = 0;
    (void)elf_getshdrstrndx(elf, &names); // on failure no section has a name
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name == NULL || strcmp(name, ".eh_frame") != 0 || (header.sh_flags & SHF_ALLOC) == 0) {
            continue;
        }
        const Elf_Data *data = elf_rawdata(section, NULL);
        if (data != NULL && data->d_buf != NULL && data->d_size <= SECTION_BYTES_MAX) {
            out->section_addr = header.sh_addr;
            strbuf_append(&out->section, data->d_buf, data->d_size);
        }
        break;
    }
    return strbuf_result(&out->section);
}

enum err unwind_copy_read(const struct elf_file *module, struct unwind_copy *out)
{
    CLEANUP(unwind_copy_release) struct unwind_copy copy = {0};
    TRY(read_section(module->elf, &copy));
    struct walk walk = walk_over(strbuf_bytes(&copy.section));
    struct entry entry;
    size_t place;
    while (next_function(&walk, &entry, &place)) {
        copy.function_count++;
    }
    *out = copy;
    copy = (struct unwind_copy){0};
    return ERR_OK;
}

static uint64_t section_offset(const struct unwind_copy *copy)
{
    return HEADER_BYTES + copy->function_count * PAIR_BYTES;
}

uint64_t unwind_copy_bytes(const struct unwind_copy *copy)
{
    return copy->function_count == 0 ? 0
                                     : section_offset(copy) + copy->section.len + sizeof(uint32_t);
}

static int compare(const void *left, const void *right)
{
    const struct pair *a = left;
    const struct pair *b = right;
    return order_u64(a->function, b->function);
}

// Move the addresses in `bytes`, a copy of the section for `section_at`, and append the pairs.
static enum err move_functions(const struct unwind_copy *copy,
                               uint64_t load_bias,
                               uint64_t addr,
                               uint8_t *bytes,
                               struct pair_vec *out)
{
    const uint64_t section_at = addr + section_offset(copy);
    struct walk walk = walk_over(strbuf_bytes(&copy->section));
    struct entry entry;
    size_t place;
    while (next_function(&walk, &entry, &place)) {
        const int64_t relative = (int32_t)get_u32(walk.section.data + place);
        const uint64_t function = load_bias + copy->section_addr + place + (uint64_t)relative;
        const int64_t moved = (int64_t)(function - (section_at + place));
        if (moved == (int32_t)moved && (int64_t)(function - addr) == (int32_t)(function - addr)) {
            put_u32(bytes + place, (uint32_t)moved);
            TRY(pair_vec_push(out, (struct pair){(int32_t)(function - addr),
                                                 (int32_t)(section_at + entry.at - addr)}));
        }
    }
    if (out->len > 0) {
        qsort(out->items, out->len, sizeof(*out->items), compare);
    }
    return ERR_OK;
}

enum err unwind_copy_make(const struct unwind_copy *copy,
                          uint64_t load_bias,
                          uint64_t addr,
                          struct strbuf *out)
{
    CLEANUP(pair_vec_release) struct pair_vec pairs = {0};
    const size_t total = unwind_copy_bytes(copy);
    if (total == 0) {
        return ERR_OK;
    }
    if (!strbuf_reserve(out, total)) {
        return ERR_NO_MEMORY;
    }
    uint8_t *to = (uint8_t *)out->data + out->len;
    memset(to, 0, total); // the last word ends the section
    memcpy(to + section_offset(copy), copy->section.data, copy->section.len);
    TRY(move_functions(copy, load_bias, addr, to + section_offset(copy), &pairs));
    to[0] = 1; // version
    to[1] = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
    to[2] = DW_EH_PE_udata4;
    to[3] = DW_EH_PE_datarel | DW_EH_PE_sdata4;
    put_u32(to + 4, (uint32_t)(section_offset(copy) - 4));
    put_u32(to + 8, (uint32_t)pairs.len);
    for (size_t i = 0; i < pairs.len; i++) {
        put_u32(to + HEADER_BYTES + i * PAIR_BYTES, (uint32_t)pairs.items[i].function);
        put_u32(to + HEADER_BYTES + i * PAIR_BYTES + 4, (uint32_t)pairs.items[i].entry);
    }
    out->len += total;
    return ERR_OK;
}
