// SPDX-License-Identifier: MIT
// Tests of lsan_rules: accepted and refused functions, on both machines.
#include "symbols/leak_rules/lsan_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "symbols/elf/test_elf_image.h"

static const char rules_name[] = "__lsan_default_suppressions";

static const struct {
    const char *what;
    uint16_t machine;
    const char *name;
    size_t len;
    uint8_t code[24];
    bool is_read;
} cases[] = {
    // The code is at 0x10100, the text at 0x10180.
    {"lea", EM_X86_64, rules_name, 8, {0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0xc3}, true},
    {"endbr64, frame, lea",
     EM_X86_64,
     rules_name,
     17,
     {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x05, 0x71, 0, 0, 0, 0x5d, 0xc3},
     true},
    {"mov eax", EM_X86_64, rules_name, 6, {0xb8, 0x80, 0x01, 0x01, 0, 0xc3}, true},
    {"mov rax", EM_X86_64, rules_name, 8, {0x48, 0xc7, 0xc0, 0x80, 0x01, 0x01, 0, 0xc3}, true},
    {"another name", EM_X86_64, "main", 8, {0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0xc3}, false},
    {"a call", EM_X86_64, rules_name, 6, {0xe8, 0x7b, 0, 0, 0, 0xc3}, false},
    {"no answer", EM_X86_64, rules_name, 1, {0xc3}, false},
    {"outside of the file", EM_X86_64, rules_name, 6, {0xb8, 0, 0, 0, 0x7f, 0xc3}, false},
    {"another machine", EM_RISCV, rules_name, 8, {0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0xc3}, false},
    // adrp x0, 0x10000; add x0, x0, #0x180; ret
    {"adrp, add",
     EM_AARCH64,
     rules_name,
     12,
     {0x00, 0x00, 0x00, 0x90, 0x00, 0x00, 0x06, 0x91, 0xc0, 0x03, 0x5f, 0xd6},
     true},
    {"bti c",
     EM_AARCH64,
     rules_name,
     16,
     {0x5f, 0x24, 0x03, 0xd5, 0x00, 0x00, 0x00, 0x90, 0x00, 0x00, 0x06, 0x91, 0xc0, 0x03, 0x5f,
      0xd6},
     true},
    {"adrp of the page before",
     EM_AARCH64,
     rules_name,
     12,
     {0xe0, 0xff, 0xff, 0xf0, 0x00, 0x00, 0x06, 0x91, 0xc0, 0x03, 0x5f, 0xd6},
     false},
    {"another register",
     EM_AARCH64,
     rules_name,
     12,
     {0x01, 0x00, 0x00, 0x90, 0x21, 0x00, 0x06, 0x91, 0xc0, 0x03, 0x5f, 0xd6},
     false},
};

static void functions_are_followed_or_left_alone(void **state)
{
    (void)state;
    static const char text[] = "leak:x";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf rules = {0};
        CLEANUP(elf_file_close) struct elf_file file = {0};
        struct bytes code = {.data = cases[i].code, .len = cases[i].len};
        struct bytes bytes = {.data = (const uint8_t *)text, .len = sizeof(text)};
        assert_true(test_elf_open(cases[i].machine, code, bytes, cases[i].name, &file));
        assert_int_equal(lsan_rules_read(&file, &rules), ERR_OK);
        const char *wanted = cases[i].is_read ? "leak:x\n" : "";
        if (strcmp(strbuf_text(&rules), wanted) != 0) {
            fail_msg("%s: \"%s\"", cases[i].what, strbuf_text(&rules));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_followed_or_left_alone),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
