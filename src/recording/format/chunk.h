// SPDX-License-Identifier: MIT
// chunk: the frame of a recording file: its header, its chunks' heads, its footer.
//
//   file header | chunk chunk chunk ... | table of contents | footer
//   chunk = head (48 bytes) + stored payload
//
// docs/format/recording.md is the specification; the numbers here are its numbers. A head has its
// own checksum: a damaged payload can be stepped over, and after a damaged head the next whole one
// can be found by looking for one whose checksum is right. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "host/containers/vec.h"

enum {
    RECORDING_VERSION_MAJOR = 2, // a reader refuses files of a higher one
    RECORDING_VERSION_MINOR = 0, // a reader may ignore this

    FILE_HEADER_BYTES = 24,
    FILE_FOOTER_BYTES = 32,
    CHUNK_HEAD_BYTES = 48,
    CONTENTS_ENTRY_BYTES = 48,
    TABLE_HEAD_BYTES = 16,
    COLUMN_HEAD_BYTES = 8,
    ANNOUNCEMENT_BYTES = 16,

    CHUNK_MAX_RAW_BYTES = 16 << 20, // of a chunk of one of the types below
    GROUP_MAX_ENTRIES = 65536,
};

// A reader must know all of the low 16 bits that are set in a file's or a chunk's flags, and may
// ignore the others.
#define FLAGS_REQUIRED 0xffffU

enum chunk_flags {
    CHUNK_ZSTD = 1 << 0, // the stored payload is one zstd frame
};

#define CHUNK_TYPE(a, b, c, d) \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

#define CHUNK_SNAPSHOT_BEGIN   CHUNK_TYPE('S', 'B', 'E', 'G')
#define CHUNK_SNAPSHOT_END     CHUNK_TYPE('S', 'E', 'N', 'D')
#define CHUNK_CONTENTS         CHUNK_TYPE('C', 'O', 'N', 'T')
#define CHUNK_META             CHUNK_TYPE('M', 'E', 'T', 'A')
#define CHUNK_TOTALS           CHUNK_TYPE('T', 'O', 'T', 'L')
#define CHUNK_COUNTERS         CHUNK_TYPE('C', 'N', 'T', 'R')
#define CHUNK_STRINGS          CHUNK_TYPE('S', 'T', 'R', 'S')
#define CHUNK_PROCESSES        CHUNK_TYPE('P', 'R', 'O', 'C')
#define CHUNK_THREADS          CHUNK_TYPE('T', 'H', 'R', 'D')
#define CHUNK_MODULES          CHUNK_TYPE('M', 'O', 'D', 'S')
#define CHUNK_SLICES           CHUNK_TYPE('S', 'L', 'I', 'C')
#define CHUNK_RSS_SAMPLES      CHUNK_TYPE('R', 'S', 'S', 'S')
#define CHUNK_FRAMES           CHUNK_TYPE('F', 'R', 'A', 'M')
#define CHUNK_NODES            CHUNK_TYPE('N', 'O', 'D', 'E')
#define CHUNK_ROWS             CHUNK_TYPE('R', 'O', 'W', 'S')
#define CHUNK_SYMBOLS          CHUNK_TYPE('S', 'Y', 'M', 'B')
#define CHUNK_CELLS            CHUNK_TYPE('C', 'E', 'L', 'L')
#define CHUNK_SIZE_BUCKETS     CHUNK_TYPE('S', 'I', 'Z', 'B')
#define CHUNK_LIFETIME_BUCKETS CHUNK_TYPE('L', 'I', 'F', 'B')
#define CHUNK_COHORTS          CHUNK_TYPE('C', 'O', 'H', 'O')
#define CHUNK_LONES            CHUNK_TYPE('L', 'O', 'N', 'E')
#define CHUNK_CELLS_FOLDED     CHUNK_TYPE('C', 'E', 'L', 'M')
#define CHUNK_CELLS_FLOWING    CHUNK_TYPE('C', 'E', 'L', 'F')
#define CHUNK_SIZES_FOLDED     CHUNK_TYPE('S', 'I', 'Z', 'M')
#define CHUNK_LIFETIMES_FOLDED CHUNK_TYPE('L', 'I', 'F', 'M')
#define CHUNK_COHORTS_FOLDED   CHUNK_TYPE('C', 'O', 'H', 'M')
#define CHUNK_MAPPINGS         CHUNK_TYPE('M', 'A', 'P', 'S')
#define CHUNK_ADHOC            CHUNK_TYPE('A', 'D', 'H', 'C')
#define CHUNK_LOOKS            CHUNK_TYPE('L', 'O', 'O', 'K')
#define CHUNK_PARTS            CHUNK_TYPE('P', 'A', 'R', 'T')
#define CHUNK_MARKS            CHUNK_TYPE('M', 'A', 'R', 'K')
#define CHUNK_UNRECORDED       CHUNK_TYPE('U', 'N', 'R', 'C')
#define CHUNK_EVENTS           CHUNK_TYPE('E', 'V', 'N', 'T')
#define CHUNK_BLOCKS           CHUNK_TYPE('B', 'L', 'C', 'K')

struct chunk_head {
    uint32_t type;
    uint32_t flags;        // enum chunk_flags
    uint64_t stored_bytes; // of the payload in the file
    uint64_t raw_bytes;    // of the payload after decompression
    uint32_t generation;   // of the snapshot it belongs to, 0 if to none
    uint32_t part;         // its number within its snapshot, from 0
    uint64_t payload_hash; // chunk_hash of the stored payload
};

struct chunk_place {
    uint64_t offset; // of the head in the file
    struct chunk_head head;
};
DEFINE_VEC(chunk_vec, struct chunk_place);

struct file_header {
    uint16_t major;
    uint16_t minor;
    uint32_t flags;
    bool is_damaged; // its checksum is wrong: the fields above may be
};

struct file_footer {
    uint64_t contents_offset; // of the head of the table of contents
    uint64_t file_bytes;      // of the whole file, this footer included
};

// XXH64 with seed 0: the one checksum of the format.
uint64_t chunk_hash(const void *data, size_t len);

void file_header_put(uint8_t out[FILE_HEADER_BYTES]);

// Whether these first bytes of a file, perhaps fewer than a header, can be those of a recording.
bool file_header_begins(const uint8_t *in, size_t len);

// False if these are not the first bytes of a recording.
bool file_header_get(const uint8_t in[FILE_HEADER_BYTES], struct file_header *out);

void file_footer_put(const struct file_footer *footer, uint8_t out[FILE_FOOTER_BYTES]);
bool file_footer_get(const uint8_t in[FILE_FOOTER_BYTES], struct file_footer *out);

void chunk_head_put(const struct chunk_head *head, uint8_t out[CHUNK_HEAD_BYTES]);

// False if these bytes are not a head: checksum wrong, or a type that is not four capital letters
// or digits.
bool chunk_head_get(const uint8_t in[CHUNK_HEAD_BYTES], struct chunk_head *out);

// A line of the table of contents: where a chunk lies, and its head without its checksum.
void contents_entry_put(const struct chunk_place *place, uint8_t out[CONTENTS_ENTRY_BYTES]);
void contents_entry_get(const uint8_t in[CONTENTS_ENTRY_BYTES], struct chunk_place *out);

// The four letters of a type, as text; bytes that are not printable become '?'.
void chunk_type_text(uint32_t type, char out[5]);
