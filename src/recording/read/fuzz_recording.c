// SPDX-License-Identifier: MIT
// fuzz_recording: open any bytes as a recording.
//
// Checksums keep a fuzzer from all code after them. So each input is opened twice: unchanged, and
// with every checksum corrected along the chain of chunks. The recording must pass
// recording_check's walk, which shares no code with the reader's repair. Seeds:
// tests/fuzz/corpus/recording, written by tests/recording/recording_example.c.
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "recording/format/chunk.h"
#include "recording/read/recording_reader.h"
#include "recording/test_support/recording_bytes.h"
#include "recording/test_support/recording_check.h"

static const struct recording_limits limits = {.base_bytes = 8 << 20, .ratio = 64};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_walkable(const struct recording *recording)
{
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    if (recording_check(recording, &findings) != ERR_OK) {
        return; // no memory
    }
    if (findings.counts[INVARIANT_INDEX] + findings.counts[INVARIANT_TREE] +
            findings.counts[INVARIANT_ORDER] >
        0) {
        abort();
    }
}

static void open_all_ways(struct bytes file)
{
    for (int walks = 0; walks < 2; walks++) {
        struct recording_limits given = limits;
        struct recording_open_result result = {0};
        CLEANUP(recording_release) struct recording recording = {0};
        struct err_info info = {0};
        given.ignores_contents = walks != 0;
        enum err err = recording_open_bytes(file, "fuzz", &given, &recording, &result, &info);
        if (err == ERR_OK) {
            check_walkable(&recording);
        } else if (info.text[0] == '\0' || info.code != err) {
            abort(); // every refusal has a sentence
        }
    }
}

// Follow the chunks by their lengths, and correct every checksum.
static void put_checksums_right(uint8_t *file, size_t size)
{
    if (size < FILE_HEADER_BYTES) {
        return;
    }
    put_u64(file + 16, chunk_hash(file, 16));
    for (size_t at = FILE_HEADER_BYTES; size - at >= CHUNK_HEAD_BYTES;) {
        uint8_t *head = file + at;
        uint64_t left = size - at - CHUNK_HEAD_BYTES;
        uint64_t stored_bytes = get_u64(head + 8);
        if (stored_bytes > left) {
            return;
        }
        put_u64(head + 32, chunk_hash(head + CHUNK_HEAD_BYTES, stored_bytes));
        put_u64(head + 40, chunk_hash(head, 40));
        at += CHUNK_HEAD_BYTES + stored_bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_all_ways((struct bytes){.data = data, .len = size});
    uint8_t *copy = malloc(size + 1);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data, size);
    put_checksums_right(copy, size);
    open_all_ways((struct bytes){.data = copy, .len = size});
    free(copy);
    return 0;
}
