// SPDX-License-Identifier: MIT
// Tests of chunk_source: reading from a file, and payloads of any size.
#include "recording/format/chunk_source.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"

enum {
    CONTENT_BYTES = 200000 // more than three of the steps in which a payload is checked
};

struct scene {
    uint8_t content[CONTENT_BYTES];
    struct chunk_source file;
};

static int make_scene(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    char path[] = "/tmp/cairn-chunk-source-XXXXXX";
    assert_non_null(scene);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    for (size_t i = 0; i < CONTENT_BYTES; i++) {
        scene->content[i] = (uint8_t)(i * 7 + i / 256);
    }
    assert_int_equal(write(fd, scene->content, CONTENT_BYTES), CONTENT_BYTES);
    scene->file = (struct chunk_source){.fd = fd, .bytes = CONTENT_BYTES, .path = "x.cairn"};
    *state = scene;
    return 0;
}

static int free_scene(void **state)
{
    struct scene *scene = *state;
    (void)close(scene->file.fd);
    free(scene);
    return 0;
}

static void exactly_what_is_there_can_be_read(void **state)
{
    struct scene *scene = *state;
    static const struct {
        uint64_t offset;
        size_t len;
        enum err wanted;
    } cases[] = {
        {0, 16, ERR_OK},
        {1, 0, ERR_OK},
        {CONTENT_BYTES - 16, 16, ERR_OK},
        {CONTENT_BYTES, 0, ERR_OK},
        {CONTENT_BYTES - 15, 16, ERR_TRUNCATED},
        {CONTENT_BYTES, 1, ERR_TRUNCATED},
        {CONTENT_BYTES + 1, 0, ERR_TRUNCATED},
        {UINT64_MAX, 2, ERR_TRUNCATED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const uint64_t offset = cases[i].offset;
        uint8_t got[16] = {0};
        struct err_info info = {0};
        errno = EINTR; // of an earlier call
        assert_int_equal(chunk_source_read(&scene->file, offset, got, cases[i].len, &info),
                         cases[i].wanted);
        if (cases[i].wanted == ERR_OK && cases[i].len > 0) {
            assert_memory_equal(got, scene->content + offset, cases[i].len);
        }
    }
}

static void a_file_may_change_while_it_is_read(void **state)
{
    struct scene *scene = *state;
    uint8_t got[32];
    struct err_info info = {0};
    struct chunk_source longer = scene->file;
    longer.bytes = CONTENT_BYTES + 16; // as if it had been cut since
    assert_int_equal(chunk_source_read(&longer, CONTENT_BYTES - 16, got, 32, &info), ERR_TRUNCATED);
    assert_string_equal(info.text, "'x.cairn' was cut while it was read");
    CLEANUP(fd_closep) int folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    longer.fd = folder;
    assert_int_equal(chunk_source_read(&longer, 0, got, 32, &info), ERR_IO);
    assert_non_null(strstr(info.text, "cannot read 'x.cairn'"));
}

// Chunks whose payload is longer than what is hashed in one step are read in several.
static void payloads_of_any_size_are_checked(void **state)
{
    struct scene *scene = *state;
    static const size_t sizes[] = {
        0, 1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 196608, CONTENT_BYTES - 64};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        CLEANUP(chunk_payload_release) struct chunk_payload payload = {0};
        struct err_info info = {0};
        struct bytes got = {0};
        struct chunk_place place = {
            .offset = 64 - CHUNK_HEAD_BYTES,
            .head = {.type = CHUNK_ROWS, .stored_bytes = sizes[i], .raw_bytes = sizes[i]}};
        place.head.payload_hash = chunk_hash(scene->content + 64, sizes[i]);
        assert_int_equal(chunk_payload_check(&scene->file, &place, &payload, &info), ERR_OK);
        assert_int_equal(chunk_payload_read(&scene->file, &place, &payload, &got, &info), ERR_OK);
        assert_int_equal(got.len, sizes[i]);
        assert_true(sizes[i] == 0 || memcmp(got.data, scene->content + 64, sizes[i]) == 0);
        place.head.payload_hash++;
        assert_int_equal(chunk_payload_check(&scene->file, &place, &payload, &info), ERR_CORRUPT);
        assert_int_equal(chunk_payload_read(&scene->file, &place, &payload, &got, &info),
                         ERR_CORRUPT);
        place.head.payload_hash--;
        place.head.stored_bytes = CONTENT_BYTES - 64 + 1; // ends behind the file
        assert_int_equal(chunk_payload_check(&scene->file, &place, &payload, &info), ERR_TRUNCATED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_what_is_there_can_be_read),
        cmocka_unit_test(a_file_may_change_while_it_is_read),
        cmocka_unit_test(payloads_of_any_size_are_checked),
    };
    return cmocka_run_group_tests(tests, make_scene, free_scene);
}
