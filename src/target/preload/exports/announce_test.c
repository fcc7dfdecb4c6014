// SPDX-License-Identifier: MIT
// Tests announce on notes of this program itself: ours between others of all lengths, and notes
// that resemble ours.
#include "target/preload/exports/announce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

// Global, because the notes name them.
const void *note_test_first;
const void *note_test_middle;
const void *note_test_last;
const void *note_test_behind;
const void *note_test_eight;
const void *note_test_set = "set before";
const void *note_test_refused[10];
const void *const note_test_constant = NULL;

// The notes of the linker (build id) are in the same segment, or in another one.
#define NOTE(owner_bytes, content_bytes, type, owner, content)                              \
    ".long " #owner_bytes ", " #content_bytes ", " #type "\n" owner "\n.balign 4\n" content \
    "\n.balign 4\n"
#define OURS(pointer) NOTE(6, 8, 1, ".asciz \"cairn\"", ".quad " pointer " - .")

__asm__(".pushsection .note.test, \"a\", %note\n"
        ".balign 4\n" OURS("note_test_first") NOTE(0, 0, 1, "", "")
            NOTE(1, 1, 1, ".byte 0", ".byte 1") NOTE(2, 2, 1, ".asciz \"a\"", ".byte 1, 2")
                NOTE(3, 3, 1, ".asciz \"ab\"", ".byte 1, 2, 3")
                    NOTE(4, 4, 1, ".asciz \"abc\"", ".byte 1, 2, 3, 4")
                        NOTE(5, 5, 1, ".asciz \"abcd\"", ".byte 1, 2, 3, 4, 5")
                            OURS("note_test_middle") OURS("note_test_set")
        // Other owners, kinds and lengths.
        NOTE(6, 8, 1, ".asciz \"cairm\"", ".quad note_test_refused - .")
            NOTE(6, 8, 2, ".asciz \"cairn\"", ".quad note_test_refused + 8 - .")
                NOTE(6, 8, 0, ".asciz \"cairn\"", ".quad note_test_refused + 16 - .")
                    NOTE(5, 8, 1, ".ascii \"cairn\"", ".quad note_test_refused + 24 - .")
                        NOTE(7, 8, 1, ".asciz \"cairns\"", ".quad note_test_refused + 32 - .")
                            NOTE(6, 4, 1, ".asciz \"cairn\"", ".long note_test_refused + 40 - .")
                                NOTE(6,
                                     12,
                                     1,
                                     ".asciz \"cairn\"",
                                     ".quad note_test_refused + 48 - .\n.long 0")
        // Not aligned, not writable, not of this module.
        OURS("note_test_refused + 57") OURS("note_test_constant")
            NOTE(6, 8, 1, ".asciz \"cairn\"", ".quad 0x4000000000000000")
                NOTE(6, 8, 1, ".asciz \"cairn\"", ".quad -0x4000000000000000")
                    OURS("note_test_last")
        // Longer than its segment, whatever follows.
        ".long 6, 0x7ffffff0, 1\n.asciz \"cairn\"\n.balign 4\n" OURS(
            "note_test_behind") ".popsection\n");

// In the segment of .note.gnu.property, which is aligned to 8 bytes, and the last there.
__asm__(".pushsection .note.test_eight, \"a\", %note\n"
        ".balign 8\n" OURS("note_test_eight") ".popsection\n");

static void a_note_gets_the_table_wherever_it_is(void **state)
{
    (void)state;
    static const int table; // its address is all that counts
    const struct cairn_api *api = (const struct cairn_api *)(const void *)&table;
    announce_api(api);
    assert_ptr_equal(note_test_first, api);
    assert_ptr_equal(note_test_middle, api);
    assert_ptr_equal(note_test_last, api);
    assert_ptr_equal(note_test_eight, api);
    assert_null(note_test_behind);
    assert_string_equal(note_test_set, "set before");
    assert_null(note_test_constant);
    for (size_t i = 0; i < ARRAY_LEN(note_test_refused); i++) {
        assert_null(note_test_refused[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_gets_the_table_wherever_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
