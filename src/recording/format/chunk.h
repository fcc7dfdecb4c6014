// SPDX-License-Identifier: MIT
// chunk: the frame of a recording file: its header, the heads of its chunks, its footer.
//
//   file header | chunk chunk chunk ... | table of contents | footer
//   chunk = head (48 bytes) + stored payload
//
// docs/format/recording.md is the specification and defines the numbers below. A head has its own
// checksum. So a reader can skip a damaged payload, and after a damaged head it finds the next
// whole one by searching for a head with a right checksum. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "host/containers/vec.h"

enum {
    RECORDING_VERSION_MAJOR = 2, // a reader refuses files of a higher one
    RECORDING_VERSION_MINOR = 0, // a reader may ignore it

    FILE_HEADER_BYTES = 24,
    FILE_FOOTER_BYTES = 32,
    CHUNK_HEAD_BYTES = 48,
    CONTENTS_ENTRY_BYTES = 48,
    TABLE_HEAD_BYTES = 16,
    COLUMN_HEAD_BYTES = 8,
    ANNOUNCEMENT_BYTES = 16,

    CHUNK_MAX_RAW_BYTES = 16 << 20, // limit for the chunk types below
    GROUP_MAX_ENTRIES = 65536,
};

// A reader must know every flag of the low 16 bits that a file or a chunk sets, and may ignore the
// other bits.
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
#define CHUNK_MAPPINGS         CHUNK_TYPE('M', 'A', 'P', 'S')
#define CHUNK_ADHOC            CHUNK_TYPE('A', 'D', 'H', 'C')
#define CHUNK_REALLOCS         CHUNK_TYPE('R', 'A', 'L', 'C')
#define CHUNK_MEMORY_SNAPSHOTS CHUNK_TYPE('L', 'O', 'O', 'K')
#define CHUNK_PARTS            CHUNK_TYPE('P', 'A', 'R', 'T')
#define CHUNK_SURVIVORS        CHUNK_TYPE('S', 'U', 'R', 'V')
#define CHUNK_MARKS            CHUNK_TYPE('M', 'A', 'R', 'K')
#define CHUNK_UNRECORDED       CHUNK_TYPE('U', 'N', 'R', 'C')
#define CHUNK_HOOKS            CHUNK_TYPE('H', 'O', 'O', 'K')
#define CHUNK_BLOCKS           CHUNK_TYPE('B', 'L', 'C', 'K')

struct chunk_head {
    uint32_t type;
    uint32_t flags;        // enum chunk_flags
    uint64_t stored_bytes; // payload size in the file
    uint64_t raw_bytes;    // payload size after decompression
    uint32_t generation;   // number of its snapshot, 0 if it belongs to none
    uint32_t part;         // number within its snapshot, from 0
    uint64_t payload_hash; // chunk_hash of the stored payload
};

struct chunk_place {
    uint64_t offset; // file offset of the head
    struct chunk_head head;
};
DEFINE_VEC(chunk_vec, struct chunk_place);

struct file_header {
    uint16_t major;
    uint16_t minor;
    uint32_t flags;
    bool is_damaged; // the checksum is wrong, so the fields above may be wrong
};

struct file_footer {
    uint64_t contents_offset; // file offset of the table of contents' head
    uint64_t file_bytes;      // file size, this footer included
};

// Compute the checksum of the format: XXH64 with seed 0.
uint64_t chunk_hash(const void *data, size_t len);

void file_header_put(uint8_t out[FILE_HEADER_BYTES]);

// Return whether a recording can begin with these bytes, which may be fewer than a header.
bool file_header_begins(const uint8_t *in, size_t len);

// Return false if a recording does not begin with these bytes.
bool file_header_get(const uint8_t in[FILE_HEADER_BYTES], struct file_header *out);

void file_footer_put(const struct file_footer *footer, uint8_t out[FILE_FOOTER_BYTES]);
bool file_footer_get(const uint8_t in[FILE_FOOTER_BYTES], struct file_footer *out);

void chunk_head_put(const struct chunk_head *head, uint8_t out[CHUNK_HEAD_BYTES]);

// Return false if the bytes are not a chunk head: the checksum is wrong, or the type is not four
// capital letters or digits.
bool chunk_head_get(const uint8_t in[CHUNK_HEAD_BYTES], struct chunk_head *out);

// Write or read one entry of the table of contents: the offset of a chunk, and its head without the
// checksum.
void contents_entry_put(const struct chunk_place *place, uint8_t out[CONTENTS_ENTRY_BYTES]);
void contents_entry_get(const uint8_t in[CONTENTS_ENTRY_BYTES], struct chunk_place *out);

// Write the four letters of a type as text. A byte that is not printable becomes '?'.
void chunk_type_text(uint32_t type, char out[5]);
