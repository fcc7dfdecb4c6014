// SPDX-License-Identifier: MIT
// api_note_test: notes that lead to a pointer, others, and damaged ones.
#include "session/api_note.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

#define ADDR 0x10000u

struct notes {
    uint8_t bytes[256];
    size_t len;
};

static void
add(struct notes *notes, const char *owner, uint32_t type, const void *text, uint32_t len)
{
    const Elf64_Nhdr head = {
        .n_namesz = (uint32_t)strlen(owner) + 1, .n_descsz = len, .n_type = type};
    memcpy(notes->bytes + notes->len, &head, sizeof(head));
    notes->len += sizeof(head);
    memcpy(notes->bytes + notes->len, owner, head.n_namesz);
    notes->len += (head.n_namesz + 3) & ~3u;
    memcpy(notes->bytes + notes->len, text, len);
    notes->len += (len + 3) & ~3u;
}

static void add_ours(struct notes *notes, int64_t distance)
{
    add(notes, "cairn", 1, &distance, sizeof(distance));
}

static uint64_t found_in(const struct notes *notes, size_t len)
{
    // Exactly as long, so that a sanitizer sees what is read behind it.
    uint8_t *bytes = malloc(len + 1);
    assert_non_null(bytes);
    memcpy(bytes, notes->bytes, len);
    struct cursor at = cursor_over((struct bytes){.data = bytes, .len = len});
    const uint64_t found = api_note_next(&at, ADDR);
    free(bytes);
    return found;
}

static void the_pointer_is_found_behind_other_notes(void **state)
{
    (void)state;
    struct notes notes = {0};
    assert_int_equal(found_in(&notes, 0), 0);
    add(&notes, "GNU", 3, "12345", 5);
    add(&notes, "cairn", 2, "12345678", 8);
    add(&notes, "cairn", 1, "1234", 4);
    assert_int_equal(found_in(&notes, notes.len), 0);
    const size_t before = notes.len;
    add_ours(&notes, 0x500);
    assert_int_equal(found_in(&notes, notes.len), ADDR + notes.len - 8 + 0x500);
    for (size_t len = before; len < notes.len; len++) { // cut short
        assert_int_equal(found_in(&notes, len), 0);
    }
}

static void lengths_that_are_too_large_end_the_search(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0xffffffff, 0xfffffffc, 0x80000000, 200};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct notes notes = {0};
        add(&notes, "GNU", 3, "12345", 5);
        add_ours(&notes, 8);
        memcpy(notes.bytes + (i % 2 == 0 ? 0 : 4), lengths + i, sizeof(lengths[i]));
        assert_int_equal(found_in(&notes, notes.len), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pointer_is_found_behind_other_notes),
        cmocka_unit_test(lengths_that_are_too_large_end_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
