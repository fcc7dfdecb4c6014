// SPDX-License-Identifier: MIT
#include "symbols/elf/function_starts.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>

#include "base/minmax.h"
#include "base/search.h"

enum {
    HEADER_BYTES = 12, // version, three encodings, the address of .eh_frame, the number of entries
    FRAMES_PLACE = 4,  // of that address, which is relative to its own place
    ENTRY_BYTES = 8,
    FDE_BYTES = 16, // as far as it is read
};

void function_starts_init(Elf *elf, struct function_starts *out)
{
    static const uint8_t form[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
                                   DW_EH_PE_datarel | DW_EH_PE_sdata4};
    size_t count;
    *out = (struct function_starts){0};
    if (elf_getphdrnum(elf, &count) != 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_GNU_EH_FRAME) {
            continue;
        }
        const Elf_Data *data =
            elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
        if (data == NULL || data->d_size < HEADER_BYTES ||
            memcmp(data->d_buf, form, sizeof(form)) != 0) {
            return;
        }
        const uint8_t *table = data->d_buf;
        const uint64_t stated = get_u32(table + 8);
        const uint64_t room = (data->d_size - HEADER_BYTES) / ENTRY_BYTES;
        *out = (struct function_starts){.elf = elf,
                                        .entries = table + HEADER_BYTES,
                                        .count = stated < room ? stated : room,
                                        .hdr_addr = header.p_vaddr,
                                        .frames_addr =
                                            header.p_vaddr + FRAMES_PLACE +
                                            (uint64_t)(int32_t)get_u32(table + FRAMES_PLACE)};
        return;
    }
}

static uint64_t address_at(const struct function_starts *starts, uint64_t index, size_t place)
{
    const int32_t offset = (int32_t)get_u32(starts->entries + index * ENTRY_BYTES + place);
    return starts->hdr_addr + (uint64_t)offset;
}

static uint64_t start_at(const struct function_starts *starts, uint64_t index)
{
    return address_at(starts, index, 0);
}

// Return the bytes of the file that are loaded at `addr`, at most `max`; none if the file lacks
// them.
static struct bytes bytes_at(Elf *elf, uint64_t addr, uint64_t max)
{
    size_t count = 0;
    (void)elf_getphdrnum(elf, &count); // succeeded before
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr load;
        if (gelf_getphdr(elf, (int)i, &load) == NULL || load.p_type != PT_LOAD ||
            addr < load.p_vaddr || addr - load.p_vaddr >= load.p_filesz) {
            continue;
        }
        const uint64_t skipped = addr - load.p_vaddr;
        const Elf_Data *data =
            elf_getdata_rawchunk(elf, (int64_t)(load.p_offset + skipped),
                                 min_u64(load.p_filesz - skipped, max), ELF_T_BYTE);
        return data != NULL ? (struct bytes){.data = data->d_buf, .len = data->d_size}
                            : (struct bytes){0};
    }
    return (struct bytes){0};
}

// Return the beginning of an FDE, NULL if the file lacks it. libelf searches all pieces that it has
// given for each further one, so the FDEs behind .eh_frame_hdr's address are one piece. BOLT leaves
// others elsewhere.
static const uint8_t *fde_at(struct function_starts *starts, uint64_t addr)
{
    struct bytes *frames = &starts->frames;
    if (frames->len == 0) {
        *frames = bytes_at(starts->elf, starts->frames_addr, UINT64_MAX);
    }
    const uint64_t skipped = addr - starts->frames_addr;
    if (skipped < frames->len) {
        return frames->len - skipped >= FDE_BYTES ? frames->data + skipped : NULL;
    }
    const struct bytes apart = bytes_at(starts->elf, addr, FDE_BYTES);
    return apart.len == FDE_BYTES ? apart.data : NULL;
}

// Return whether the function's FDE covers `address`. Reads its length, its CIE, its start and its
// size; the start in the form that compilers write.
static bool covers(struct function_starts *starts, uint64_t index, uint64_t address)
{
    const uint64_t fde = address_at(starts, index, 4);
    const uint8_t *bytes = fde_at(starts, fde);
    const uint64_t start = start_at(starts, index);
    return bytes != NULL && fde + 8 + (uint64_t)(int32_t)get_u32(bytes + 8) == start &&
           address - start < get_u32(bytes + 12);
}

uint64_t function_starts_find(struct function_starts *starts, uint64_t address)
{
    const size_t next = FIRST_WHERE(at, starts->count, start_at(starts, at) > address);
    return next > 0 && covers(starts, next - 1, address) ? start_at(starts, next - 1) : 0;
}
