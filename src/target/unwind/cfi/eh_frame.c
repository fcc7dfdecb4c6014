// SPDX-License-Identifier: MIT
#include "target/unwind/cfi/eh_frame.h"

#include <stddef.h>

#include "base/cursor.h"
#include "base/search.h"

// DW_EH_PE: the format of a pointer (low four bits) and its base (next three).
enum pointer_encoding {
    PE_ABSPTR = 0x00,
    PE_ULEB128 = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB128 = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_FORMAT = 0x0f,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_APPLICATION = 0x70,
    PE_INDIRECT = 0x80,
    PE_OMIT = 0xff,
};

// How much of an entry is read before its length is known, and of the header before the index.
#define ENTRY_START_BYTES  12u
#define HEADER_START_BYTES 20u

#define PE_SORTED_INDEX (PE_DATAREL | PE_SDATA4) // what every linker writes

static uint64_t cursor_addr(const struct cursor *c, const struct eh_image *image)
{
    return image->addr + (uint64_t)(c->at - image->bytes.data);
}

// Return a cursor from `addr` to the end of the image; failed if `addr` is not in it.
static struct cursor cursor_at(const struct eh_image *image, uint64_t addr)
{
    uint64_t offset = addr - image->addr;
    struct cursor c = cursor_over(image->bytes);
    (void)cursor_take(&c, offset <= image->bytes.len ? (size_t)offset : SIZE_MAX);
    return c;
}

// Return the next `len` bytes of `c` as a cursor of their own, which may be failed.
static struct cursor sub_cursor(struct cursor *c, uint64_t len)
{
    const uint8_t *data = cursor_take(c, len <= SIZE_MAX ? (size_t)len : SIZE_MAX);
    struct bytes range = {c->at, 0};
    if (data != NULL) {
        range = (struct bytes){data, (size_t)len};
    }
    struct cursor sub = cursor_over(range);
    sub.failed = data == NULL;
    return sub;
}

uint64_t eh_read_pointer(struct cursor *c,
                         const struct eh_image *image,
                         uint8_t encoding,
                         uint64_t data_addr)
{
    uint64_t base = 0;
    switch (encoding & PE_APPLICATION) {
    case PE_ABSPTR:
        break;
    case PE_PCREL:
        base = cursor_addr(c, image);
        break;
    case PE_DATAREL:
        base = data_addr;
        break;
    default:
        c->failed = true;
        return 0;
    }
    switch (encoding & PE_FORMAT) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        return base + cursor_u64(c);
    case PE_ULEB128:
        return base + cursor_uleb(c);
    case PE_UDATA2:
        return base + cursor_u16(c);
    case PE_UDATA4:
        return base + cursor_u32(c);
    case PE_SLEB128:
        return base + (uint64_t)cursor_sleb(c);
    case PE_SDATA2:
        return base + (uint64_t)(int64_t)(int16_t)cursor_u16(c);
    case PE_SDATA4:
        return base + (uint64_t)(int64_t)(int32_t)cursor_u32(c);
    default:
        c->failed = true;
        return 0;
    }
}

static void fetch(const struct eh_table *table, uint64_t addr, uint64_t len)
{
    if (table->fetch != NULL) {
        table->fetch(table, addr, len);
    }
}

static const struct eh_image *frames_of(const struct eh_table *table)
{
    return table->frames.bytes.len > 0 ? &table->frames : &table->image;
}

// One entry of .eh_frame, before it is known to be a CIE or an FDE.
struct entry {
    struct cursor body; // after the id
    uint64_t id_addr;   // of the id field
    uint32_t id;        // 0: CIE; else the distance from the id field back to the CIE
    bool terminator;    // length 0
    uint64_t next_addr; // of the following entry
};

static enum err read_entry(const struct eh_table *table, uint64_t addr, struct entry *out)
{
    const struct eh_image *image = frames_of(table);
    fetch(table, addr, ENTRY_START_BYTES);
    struct cursor c = cursor_at(image, addr);
    uint64_t len = cursor_u32(&c);
    if (len == UINT32_MAX) {
        len = cursor_u64(&c);
    }
    struct entry entry = {.terminator = len == 0, .id_addr = cursor_addr(&c, image)};
    fetch(table, entry.id_addr, len);
    entry.body = sub_cursor(&c, len);
    entry.id = entry.terminator ? 0 : cursor_u32(&entry.body);
    if (c.failed || entry.body.failed) {
        return ERR_CORRUPT;
    }
    entry.next_addr = cursor_addr(&c, image);
    *out = entry;
    return ERR_OK;
}

static enum err read_augmentation(struct cursor *c,
                                  const char *letters,
                                  const struct eh_table *table,
                                  struct eh_function *out)
{
    for (; *letters != 0; letters++) {
        switch (*letters) {
        case 'L': // encoding of the language-specific data
            (void)cursor_u8(c);
            break;
        case 'P': { // personality routine
            uint8_t encoding = cursor_u8(c) & (uint8_t)~PE_INDIRECT;
            (void)eh_read_pointer(c, frames_of(table), encoding, table->hdr_addr);
            break;
        }
        case 'R':
            out->pointer_encoding = cursor_u8(c);
            break;
        case 'S':
            out->signal_frame = true;
            break;
        case 'B': // AArch64: return addresses are signed with the B key
        case 'G': // AArch64: the stack is tagged
            break;
        default:
            return ERR_UNSUPPORTED;
        }
    }
    return c->failed ? ERR_CORRUPT : ERR_OK;
}

static enum err read_cie(const struct eh_table *table,
                         uint64_t addr,
                         struct eh_function *out,
                         bool *has_augmentation)
{
    struct entry entry;
    TRY(read_entry(table, addr, &entry));
    if (entry.terminator || entry.id != 0) {
        return ERR_CORRUPT;
    }
    struct cursor *c = &entry.body;
    uint8_t version = cursor_u8(c);
    const char *letters = cursor_string(c);
    if (version != 1 && version != 3 && version != 4) {
        return ERR_UNSUPPORTED;
    }
    if (version == 4) {
        uint8_t address_bytes = cursor_u8(c);
        uint8_t segment_bytes = cursor_u8(c);
        if (address_bytes != 8 || segment_bytes != 0) {
            return ERR_UNSUPPORTED;
        }
    }
    out->code_align = cursor_uleb(c);
    out->data_align = cursor_sleb(c);
    out->return_register = version == 1 ? cursor_u8(c) : cursor_uleb(c);
    out->pointer_encoding = PE_ABSPTR;
    *has_augmentation = *letters == 'z';
    if (*letters == 'z') {
        struct cursor data = sub_cursor(c, cursor_uleb(c));
        TRY(read_augmentation(&data, letters + 1, table, out));
    } else if (*letters != 0) {
        return ERR_UNSUPPORTED;
    }
    out->cie_program = (struct bytes){c->at, cursor_left(c)};
    return c->failed ? ERR_CORRUPT : ERR_OK;
}

enum err eh_read_fde(const struct eh_table *table, uint64_t fde_addr, struct eh_function *out)
{
    struct entry entry;
    TRY(read_entry(table, fde_addr, &entry));
    if (entry.terminator || entry.id == 0) {
        return ERR_NOT_FOUND;
    }
    const struct eh_image *image = frames_of(table);
    struct eh_function function = {.image = image};
    bool has_augmentation = false;
    TRY(read_cie(table, entry.id_addr - entry.id, &function, &has_augmentation));
    struct cursor *c = &entry.body;
    function.start = eh_read_pointer(c, image, function.pointer_encoding, table->hdr_addr);
    // The length has the pointer's format, but no base.
    uint64_t len = eh_read_pointer(c, image, function.pointer_encoding & PE_FORMAT, 0);
    function.end = function.start + len;
    if (has_augmentation) {
        (void)sub_cursor(c, cursor_uleb(c));
    }
    function.fde_program = (struct bytes){c->at, cursor_left(c)};
    if (c->failed || function.end < function.start) {
        return ERR_CORRUPT;
    }
    *out = function;
    return ERR_OK;
}

// The contents of .eh_frame_hdr.
struct header {
    uint64_t eh_frame_addr;
    struct bytes index; // pairs (start of function, address of FDE), or empty
};

static enum err read_header(const struct eh_table *table, struct header *out)
{
    fetch(table, table->hdr_addr, HEADER_START_BYTES);
    struct cursor c = cursor_at(&table->image, table->hdr_addr);
    uint8_t version = cursor_u8(&c);
    uint8_t frame_encoding = cursor_u8(&c);
    uint8_t count_encoding = cursor_u8(&c);
    uint8_t index_encoding = cursor_u8(&c);
    struct header header = {0};
    header.eh_frame_addr = eh_read_pointer(&c, &table->image, frame_encoding, table->hdr_addr);
    if (c.failed || version != 1) {
        return ERR_CORRUPT;
    }
    if (count_encoding != PE_OMIT && index_encoding == PE_SORTED_INDEX) {
        uint64_t count = eh_read_pointer(&c, &table->image, count_encoding, table->hdr_addr);
        if (c.failed || count > cursor_left(&c) / 8) {
            return ERR_CORRUPT;
        }
        header.index = (struct bytes){c.at, (size_t)count * 8};
    }
    *out = header;
    return ERR_OK;
}

uint64_t eh_first(const struct eh_table *table)
{
    struct header header;
    return read_header(table, &header) == ERR_OK ? header.eh_frame_addr : 0;
}

bool eh_next(const struct eh_table *table, uint64_t *entry_addr)
{
    struct entry entry;
    if (read_entry(table, *entry_addr, &entry) != ERR_OK || entry.terminator) {
        return false;
    }
    *entry_addr = entry.next_addr;
    return true;
}

static uint64_t index_field(struct bytes index, size_t row, size_t field, uint64_t hdr_addr)
{
    int32_t relative = (int32_t)get_u32(index.data + row * 8 + field * 4);
    return hdr_addr + (uint64_t)(int64_t)relative;
}

static uint64_t row_addr(const struct eh_table *table, struct bytes index, size_t row)
{
    return table->image.addr + (uint64_t)(index.data - table->image.bytes.data) + row * 8;
}

static uint64_t row_start(const struct eh_table *table, struct bytes index, size_t row)
{
    fetch(table, row_addr(table, index, row), 8);
    return index_field(index, row, 0, table->hdr_addr);
}

// Find the last row whose function starts at or before `pc`.
static enum err find_in_index(const struct eh_table *table,
                              struct bytes index,
                              uint64_t pc,
                              struct eh_function *out)
{
    const size_t next = FIRST_WHERE(row, index.len / 8, row_start(table, index, row) > pc);
    if (next == 0) {
        return ERR_NOT_FOUND;
    }
    fetch(table, row_addr(table, index, next - 1), 8);
    return eh_read_fde(table, index_field(index, next - 1, 1, table->hdr_addr), out);
}

static enum err
find_one_by_one(const struct eh_table *table, uint64_t addr, uint64_t pc, struct eh_function *out)
{
    for (uint64_t next = addr; eh_next(table, &next); addr = next) {
        struct eh_function function;
        enum err err = eh_read_fde(table, addr, &function);
        if (err == ERR_OK && pc >= function.start && pc < function.end) {
            *out = function;
            return ERR_OK;
        }
    }
    return ERR_NOT_FOUND;
}

enum err eh_find(const struct eh_table *table, uint64_t pc, struct eh_function *out)
{
    struct header header;
    TRY(read_header(table, &header));
    if (header.index.len == 0 && table->fetch != NULL) {
        return ERR_UNSUPPORTED; // each entry would take system calls
    }
    if (header.index.len == 0) {
        return find_one_by_one(table, header.eh_frame_addr, pc, out);
    }
    struct eh_function function;
    TRY(find_in_index(table, header.index, pc, &function));
    if (pc < function.start || pc >= function.end) {
        return ERR_NOT_FOUND;
    }
    *out = function;
    return ERR_OK;
}

bool eh_begins_function(const struct eh_table *table, uint64_t pc)
{
    struct eh_function function;
    return eh_find(table, pc, &function) == ERR_OK && function.start == pc;
}
