// SPDX-License-Identifier: MIT
// A file with each of its chunks damaged, cut off, removed and repeated: the sentence about each,
// and what is read of it, follow from the damage alone (changed_bytes.h). Lengths of compressed
// chunks differ between machines, so numbers that are offsets or lengths are said as which.
#include <ctype.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "recording/format/chunk.h"
#include "recording/read/recording_reader.h"
#include "recording/test_support/recording_bytes.h"
#include "recording/test_support/recording_outcome.h"
#include "recording/test_support/recording_random.h"
#include "recording/test_support/recording_text.h"
#include "recording/test_support/test_folder.h"
#include "recording/test_support/test_recording.h"
#include "recording/write/recording_writer.h"

struct whole {
    struct strbuf bytes;
    struct chunk_vec chunks;
};

static void whole_release(struct whole *whole)
{
    strbuf_release(&whole->bytes);
    chunk_vec_release(&whole->chunks);
}

static size_t size_of(const struct chunk_place *chunk)
{
    return CHUNK_HEAD_BYTES + (size_t)chunk->head.stored_bytes;
}

// A file with two snapshots: the second is another recording.
static void make(void *state, struct whole *out)
{
    struct err_info info = {0};
    CLEANUP(recording_release) struct recording first = {0};
    CLEANUP(recording_release) struct recording second = {0};
    const char *path = test_path(state, "whole.cairn");
    must(recording_from_text(test_recording_text, &first, &info), &info);
    must(recording_random_realistic(3, 20, &second), &info);
    {
        CLEANUP(recording_writer_release) struct recording_writer w = {0};
        CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        must(recording_writer_init(&w, fd, path, NULL, &info), &info);
        must(recording_writer_snapshot(&w, &first, &info), &info);
        must(recording_writer_snapshot(&w, &second, &info), &info);
        must(recording_writer_finish(&w, &info), &info);
    }
    must(file_read(path, SIZE_MAX, &out->bytes, &info), &info);
    struct chunk_place place = {.offset = FILE_HEADER_BYTES};
    while (place.offset + CHUNK_HEAD_BYTES <= out->bytes.len &&
           chunk_head_get((const uint8_t *)out->bytes.data + place.offset, &place.head)) {
        must(chunk_vec_push(&out->chunks, place), &info);
        place.offset += size_of(&place);
    }
}

// Append the sentence with each number that depends on the compression as a letter: @ the damaged
// chunk's offset, # its length, % one less, $ all bytes from there to the end, ? another.
static void append_as_places(const struct whole *whole,
                             const struct chunk_place *chunk,
                             const char *said,
                             struct strbuf *out)
{
    const uint64_t size = size_of(chunk);
    while (*said != '\0') {
        char *end = NULL;
        if (!isdigit((unsigned char)*said)) {
            strbuf_append_char(out, *said++);
            continue;
        }
        const uint64_t number = strtoull(said, &end, 10);
        const char *letter = number == chunk->offset                      ? "@"
                             : number == size                             ? "#"
                             : number + 1 == size                         ? "%"
                             : number == whole->bytes.len - chunk->offset ? "$"
                                                                          : "?";
        if (number < CHUNK_HEAD_BYTES) {
            strbuf_append(out, said, (size_t)(end - said));
        } else {
            strbuf_append_text(out, letter);
        }
        said = end;
    }
}

enum damage {
    HEAD_TYPE,
    HEAD_HASH,
    PAYLOAD,
    CUT_BEFORE,
    CUT_IN_HEAD,
    CUT_IN_PAYLOAD,
    CLEARED,
    REMOVED,
    REPEATED,
    DAMAGES,
};

// Return the damaged file's length. `bytes` has room for the file and one chunk more.
static size_t damage(uint8_t *bytes, size_t len, const struct chunk_place *chunk, enum damage what)
{
    const size_t begin = (size_t)chunk->offset;
    const size_t end = begin + size_of(chunk);
    switch (what) {
    case HEAD_TYPE:
        bytes[begin] ^= 1;
        return len;
    case HEAD_HASH:
        bytes[begin + 35] ^= 1;
        return len;
    case PAYLOAD:
        bytes[end - 1] ^= 1;
        return len;
    case CUT_BEFORE:
        return begin;
    case CUT_IN_HEAD:
        return begin + 20;
    case CUT_IN_PAYLOAD:
        return end - 1;
    case CLEARED:
        memset(bytes + begin, 0, end - begin);
        return len;
    case REMOVED:
        memmove(bytes + begin, bytes + end, len - end);
        return len - (end - begin);
    case REPEATED:
        memmove(bytes + end, bytes + begin, len - begin);
        return len + (end - begin);
    default:
        return len;
    }
}

static void open_damaged(const struct whole *whole,
                         const struct chunk_place *chunk,
                         enum damage what,
                         const struct recording_limits *limits,
                         struct outcome_sum *sum)
{
    uint8_t *bytes = malloc(whole->bytes.len + size_of(chunk));
    struct err_info info = {0};
    struct recording_open_result result = {0};
    CLEANUP(recording_release) struct recording r = {0};
    CLEANUP(strbuf_release) struct strbuf said = {0};
    assert_non_null(bytes);
    memcpy(bytes, whole->bytes.data, whole->bytes.len);
    const size_t len = damage(bytes, whole->bytes.len, chunk, what);
    const enum err err = recording_open_bytes((struct bytes){.data = bytes, .len = len}, "test",
                                              limits, &r, &result, &info);
    free(bytes);
    strbuf_printf(&said, "%d %s %d %u ", (int)what, err_name(err), (int)result.condition,
                  result.generation);
    append_as_places(whole, chunk, err == ERR_OK ? result.missing : info.text, &said);
    outcome_add_text(sum, strbuf_text(&said));
    if (err == ERR_OK) {
        assert_int_equal(result.file_bytes, len);
        outcome_add_recording(sum, &r);
    }
}

static void damage_to_each_chunk_is_described_alike_each_time(void **state)
{
    static const struct {
        const char *name;
        bool ignores_contents;
    } ways[] = {{"contents", false}, {"walk", true}};
    CLEANUP(whole_release) struct whole whole = {0};
    unsigned changed = 0;
    make(*state, &whole);
    assert_true(whole.chunks.len > 20);
    for (size_t way = 0; way < ARRAY_LEN(ways); way++) {
        struct outcome_sum sums[2] = {0};
        struct recording_limits limits = recording_default_limits;
        limits.ignores_contents = ways[way].ignores_contents;
        for (size_t i = 0; i < 2 * whole.chunks.len * DAMAGES; i++) {
            const size_t k = i / 2;
            open_damaged(&whole, &whole.chunks.items[k / DAMAGES], k % DAMAGES, &limits,
                         &sums[i % 2]);
        }
        changed += !outcomes_agree(sums, ways[way].name);
    }
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(damage_to_each_chunk_is_described_alike_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
