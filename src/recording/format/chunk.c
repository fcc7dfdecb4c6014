// SPDX-License-Identifier: MIT
#include "recording/format/chunk.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// As in PNG: the byte above 127 reveals 7-bit channels, the line ends reveal text-mode conversion.
static const uint8_t file_magic[8] = {0x8b, 'c', 'a', 'i', 'r', 'n', '\r', '\n'};
static const uint8_t footer_magic[8] = {'\n', '\r', 'n', 'r', 'i', 'a', 'c', 0x8b};

uint64_t chunk_hash(const void *data, size_t len)
{
    return XXH64(data, len, 0);
}

void file_header_put(uint8_t out[FILE_HEADER_BYTES])
{
    memcpy(out, file_magic, sizeof(file_magic));
    put_u16(out + 8, RECORDING_VERSION_MAJOR);
    put_u16(out + 10, RECORDING_VERSION_MINOR);
    put_u32(out + 12, 0);
    put_u64(out + 16, chunk_hash(out, 16));
}

bool file_header_begins(const uint8_t *in, size_t len)
{
    return memcmp(in, file_magic, len < sizeof(file_magic) ? len : sizeof(file_magic)) == 0;
}

bool file_header_get(const uint8_t in[FILE_HEADER_BYTES], struct file_header *out)
{
    if (memcmp(in, file_magic, sizeof(file_magic)) != 0) {
        return false;
    }
    *out = (struct file_header){.major = get_u16(in + 8),
                                .minor = get_u16(in + 10),
                                .flags = get_u32(in + 12),
                                .is_damaged = get_u64(in + 16) != chunk_hash(in, 16)};
    return true;
}

void file_footer_put(const struct file_footer *footer, uint8_t out[FILE_FOOTER_BYTES])
{
    put_u64(out, footer->contents_offset);
    put_u64(out + 8, footer->file_bytes);
    put_u64(out + 16, chunk_hash(out, 16));
    memcpy(out + 24, footer_magic, sizeof(footer_magic));
}

bool file_footer_get(const uint8_t in[FILE_FOOTER_BYTES], struct file_footer *out)
{
    if (memcmp(in + 24, footer_magic, sizeof(footer_magic)) != 0 ||
        get_u64(in + 16) != chunk_hash(in, 16)) {
        return false;
    }
    *out = (struct file_footer){.contents_offset = get_u64(in), .file_bytes = get_u64(in + 8)};
    return true;
}

static void put_fields(const struct chunk_head *head, uint8_t *out)
{
    put_u32(out, head->type);
    put_u32(out + 4, head->flags);
    put_u64(out + 8, head->stored_bytes);
    put_u64(out + 16, head->raw_bytes);
    put_u32(out + 24, head->generation);
    put_u32(out + 28, head->part);
    put_u64(out + 32, head->payload_hash);
}

static struct chunk_head get_fields(const uint8_t *in)
{
    return (struct chunk_head){.type = get_u32(in),
                               .flags = get_u32(in + 4),
                               .stored_bytes = get_u64(in + 8),
                               .raw_bytes = get_u64(in + 16),
                               .generation = get_u32(in + 24),
                               .part = get_u32(in + 28),
                               .payload_hash = get_u64(in + 32)};
}

void chunk_head_put(const struct chunk_head *head, uint8_t out[CHUNK_HEAD_BYTES])
{
    put_fields(head, out);
    put_u64(out + 40, chunk_hash(out, 40));
}

void contents_entry_put(const struct chunk_place *place, uint8_t out[CONTENTS_ENTRY_BYTES])
{
    put_u64(out, place->offset);
    put_fields(&place->head, out + 8);
}

void contents_entry_get(const uint8_t in[CONTENTS_ENTRY_BYTES], struct chunk_place *out)
{
    *out = (struct chunk_place){.offset = get_u64(in), .head = get_fields(in + 8)};
}

static bool is_type_letter(uint8_t letter)
{
    return (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
}

bool chunk_head_get(const uint8_t in[CHUNK_HEAD_BYTES], struct chunk_head *out)
{
    // Check the letters first: a search for a head rejects nearly every offset here, without
    // hashing.
    if (!is_type_letter(in[0]) || !is_type_letter(in[1]) || !is_type_letter(in[2]) ||
        !is_type_letter(in[3]) || get_u64(in + 40) != chunk_hash(in, 40)) {
        return false;
    }
    *out = get_fields(in);
    return true;
}

void chunk_type_text(uint32_t type, char out[5])
{
    for (size_t i = 0; i < 4; i++) {
        uint8_t letter = (uint8_t)(type >> (8 * i));
        bool is_printable = letter >= 0x20 && letter < 0x7f;
        out[i] = (char)(is_printable ? letter : '?');
    }
    out[4] = '\0';
}
