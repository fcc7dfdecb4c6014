// SPDX-License-Identifier: MIT
// A process that cannot open the file of the words any more maps what it has of it a second time.
#include "target/producer/words/words_source.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/books/block_words.h"
#include "target/producer/words/live_words.h"
#include "target/producer/words/process_words.h"

#define BASE ((size_t)1 << 20) // of the words in the file
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

// A file of words that cannot be opened again, and a mapping of its head.
struct fixture {
    int fd;
    struct words_source source;
};

static long refuse(const void *context)
{
    (void)context;
    return -EACCES;
}

static void setup(struct fixture *f)
{
    const uint64_t magic = WORDS_MAGIC;
    f->fd = memfd_create("words", MFD_CLOEXEC);
    assert_true(f->fd >= 0);
    assert_int_equal(ftruncate(f->fd, (off_t)(BASE + WORDS_FILE_BYTES)), 0);
    assert_int_equal(pwrite(f->fd, &magic, sizeof(magic), BASE), sizeof(magic));
    void *head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    assert_ptr_not_equal(head, MAP_FAILED);
    f->source = (struct words_source){.base = BASE, .open = refuse, .head = head};
}

static void teardown(struct fixture *f)
{
    assert_int_equal(munmap(f->source.head, PAGE), 0);
    (void)close(f->fd);
}

static void a_part_is_mapped_again_from_the_head(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    const uint64_t offset = words_region_offset(WORDS_GROUP);
    char *part = words_source_map(&f.source, offset, PAGE);
    assert_non_null(part);
    const uint64_t written = 0x1234567890;
    uint64_t found = 0;
    unsigned char unused;
    assert_int_equal(mincore(part - PAGE, PAGE, &unused), -1); // only the part is mapped
    assert_true(words_source_open_part(part, PAGE));
    memcpy(part, &written, sizeof(written));
    assert_int_equal(pread(f.fd, &found, sizeof(found), (off_t)(BASE + offset)), sizeof(found));
    assert_int_equal(found, written);
    memcpy(f.source.head, &written, sizeof(written)); // it stays where it was
    words_source_unmap(&f.source, part, PAGE);
    assert_int_equal(mincore(part, PAGE, &unused), -1);
    teardown(&f);
}

static void a_process_that_cannot_open_the_file_has_words(void **state)
{
    (void)state;
    struct fixture f;
    struct words_ended ended;
    struct word_block found = {0};
    const struct word_block block = {.address = 0x7f0000000040, .size_bytes = 40, .row = 5};
    setup(&f);
    struct process_words *words = process_words_new();
    assert_non_null(words);
    assert_int_equal(process_words_open(words, &f.source, 1, NULL), ERR_OK);
    assert_true(words_put(words, &block, &ended));
    assert_true(words_take(words, block.address, &found));
    assert_int_equal(found.size_bytes, block.size_bytes);
    teardown(&f);
}

static void a_locked_head_is_no_reason_to_fill_the_file(void **state)
{
    (void)state;
    struct fixture f;
    struct stat file;
    setup(&f);
    assert_int_equal(mlock(f.source.head, PAGE), 0);
    void *part = words_source_map(&f.source, 0, PAGE);
    assert_non_null(part);
    assert_int_equal(fstat(f.fd, &file), 0);
    assert_true((size_t)file.st_blocks * 512 <= 2 * PAGE); // the head, and where the magic is
    words_source_unmap(&f.source, part, PAGE);
    teardown(&f);
}

static void nothing_is_mapped_without_a_head(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    const struct words_source source = {.base = BASE, .open = refuse};
    assert_null(words_source_map(&source, 0, PAGE));
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_mapped_again_from_the_head),
        cmocka_unit_test(a_process_that_cannot_open_the_file_has_words),
        cmocka_unit_test(a_locked_head_is_no_reason_to_fill_the_file),
        cmocka_unit_test(nothing_is_mapped_without_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
