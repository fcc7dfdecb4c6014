// SPDX-License-Identifier: MIT
// changed_registers_test: code that is made up of few instructions, and libc's allocator. x86-64.
#include "inject/code/changed_registers.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/minmax.h"

// Writes of all nine registers but rax, with the last one left to the cases: rcx, rdx, rsi, rdi, r8
// to r11.
#define MOST "\x31\xc9\x31\xd2\x31\xf6\x31\xff\x45\x31\xc0\x45\x31\xc9\x45\x31\xd2\x45\x31\xdb"
#define ALL  MOST "\x31\xc0" // 22 bytes
#define RET  "\xc3"

// Copies of rcx to the red zone and back.
#define SAVE "\x48\x89\x4c\x24\xf8"
#define READ "\x48\x8b\x4c\x24\xf8"

struct code {
    const char *name;
    const char *bytes;
    size_t len;
    size_t function_bytes; // 0: no unwind tables
    bool changes_all;
};
#define CODE(...) __VA_ARGS__, sizeof(__VA_ARGS__) - 1

static const struct code cases[] = {
    {"all", CODE(ALL RET), 0, true},
    {"none", CODE(RET), 0, false},
    {"without rax", CODE(MOST RET), 0, false},
    {"a part of rax: setz al", CODE(MOST "\x0f\x94\xc0" RET), 0, true},
    {"if at all: cmovz rax, rcx", CODE(MOST "\x48\x0f\x44\xc1" RET), 0, true},
    {"by implication: cltq", CODE(MOST "\x48\x98" RET), 0, true},
    {"rax is only read", CODE(MOST "\x48\x85\xc0\x48\x89\x07" RET), 0, false},
    {"behind ret", CODE(MOST RET "\x31\xc0" RET), 0, false},
    {"behind ud2", CODE(MOST "\x0f\x0b\x31\xc0" RET), 0, false},
    {"behind a branch", CODE(MOST "\x74\x01" RET "\x31\xc0" RET), 0, true},
    {"behind a jump", CODE(MOST "\xeb\x01" RET "\x31\xc0" RET), 0, true},
    {"behind a jump of 32 bits", CODE(MOST "\xe9\1\0\0\0" RET "\x31\xc0" RET), 0, true},
    {"behind an indirect jump", CODE(MOST "\xff\xe1\x31\xc0" RET), 0, false},
    {"behind a call that may not return", CODE(MOST "\xe8\0\0\0\1\x31\xc0" RET), 0, false},
    {"behind a call, within the function", CODE(MOST "\xe8\0\0\0\1\x31\xc0" RET), 28, true},
    {"behind a call, in the next function", CODE(MOST "\xe8\0\0\0\1\x31\xc0" RET), 25, false},
    {"in a called function", CODE("\xe8\0\0\0\0" ALL RET), 0, true},
    {"in a function called by that", CODE("\xe8\1\0\0\0\xcc\xe8\1\0\0\0\xcc" ALL RET), 0, true},
    {"in an indirectly called one", CODE("\xff\xd0" ALL RET), 0, false},
    {"pushed rax", CODE("\x50" ALL "\x58" RET), 0, false},
    {"pushed rbx", CODE("\x53" ALL "\x5b" RET), 0, true},
    {"pushed rdx, and it calls", CODE("\x52\xe8\0\0\0\0" ALL RET), 0, false},
    {"pushed r9 in the called one", CODE(ALL "\xe8\1\0\0\0\xc3\x41\x51\x45\x31\xc9" RET), 0, true},
    {"pushed r9 in that one only", CODE("\xe8\1\0\0\0\xc3\x41\x51" ALL RET), 0, false},
    {"a loop", CODE(MOST "\xeb\xfe"), 0, false},
    {"calls itself", CODE(MOST "\xe8\xe7\xff\xff\xff" RET), 0, false},
    {"undecodable", CODE(MOST "\x06\x31\xc0" RET), 0, false},
    {"cut", CODE(MOST "\x31"), 0, false},
    {"a system call: rcx and r11",
     CODE("\x31\xd2\x31\xf6\x31\xff\x45\x31\xc0\x45\x31\xc9\x45\x31\xd2\x31\xc0\x0f\x05" RET), 0,
     true},

    {"rcx is read back from the stack", CODE(SAVE ALL READ RET), 0, false},
    {"from another register", CODE("\x48\x89\xcb" ALL "\x48\x89\xd9" RET), 0, false},
    {"from a vector register", CODE("\x66\x48\x0f\x6e\xc1" ALL "\x66\x48\x0f\x7e\xc1" RET), 0,
     false},
    {"from a variable", CODE("\x48\x89\x0d\0\0\0\0" ALL "\x48\x8b\x0d\xe3\xff\xff\xff" RET), 0,
     false},
    {"from another variable", CODE("\x48\x89\x0d\0\0\0\0" ALL "\x48\x8b\x0d\0\0\0\0" RET), 0, true},
    {"by xchg", CODE("\x48\x87\xcb" ALL "\x48\x87\xcb" RET), 0, false},
    {"in a called function", CODE("\xe8\1\0\0\0\xc3" SAVE ALL READ RET), 0, false},
    {"on one of two ways", CODE(SAVE ALL "\x74\5" READ RET), 0, false},
    {"in a loop", CODE(SAVE READ ALL "\x74\xe3" RET), 0, false},
    {"before a call", CODE(SAVE ALL READ "\xe8\1\0\0\0" RET RET), 39, false},
    {"before a call of a function that changes it",
     CODE(SAVE ALL READ "\xe8\1\0\0\0" RET "\x31\xc9" RET), 41, true},
    {"around a call", CODE(SAVE "\xe8\6\0\0\0" READ RET ALL RET), 39, false},
    {"around a call, unseen", CODE(SAVE "\xe8\6\0\0\0" READ RET ALL RET), 0, false},
    {"behind an indirect jump, unseen", CODE(SAVE ALL "\xff\xe3"), 0, false},
    {"behind what is not decoded, unseen", CODE(SAVE ALL "\x06"), 0, false},
    {"saved, but never read back", CODE(SAVE ALL RET), 0, true},
    {"saved, and the function ends in a call", CODE(SAVE ALL "\xe8\0\0\0\1" READ RET), 32, true},
    {"another value is saved", CODE("\x31\xc9" SAVE ALL READ RET), 0, true},
    {"read back from elsewhere", CODE(SAVE ALL "\x48\x89\xd9" RET), 0, true},
    {"from elsewhere on the stack", CODE(SAVE ALL "\x48\x8b\x4c\x24\xf0" RET), 0, true},
    {"the stack pointer has moved",
     CODE(SAVE "\x48\x83\xec\x10" ALL "\x48\x8b\x4c\x24\x08\x48\x83\xc4\x10" RET), 0, false},
    {"the stack pointer has moved elsewhere",
     CODE(SAVE "\x48\x83\xe4\xc0" ALL "\x48\x8b\x4c\x24\x08" RET), 0, false},
    {"by pop", CODE("\x48\x83\xec\x08\x48\x89\x0c\x24" ALL "\x59" RET), 0, false},
    {"saved below what is pushed then",
     CODE("\x48\x89\x4c\x24\xf0\x53" ALL "\x48\x8b\x4c\x24\xf8\x5b" RET), 0, false},
    {"saved at rbp, which is rsp",
     CODE("\x55\x48\x89\xe5\x48\x89\x4d\xf8" ALL "\x48\x8b\x4c\x24\xf8\x5d" RET), 0, false},
    {"the same, elsewhere",
     CODE("\x55\x48\x89\xe5\x48\x89\x4d\xf8" ALL "\x48\x8b\x4c\x24\xf0\x5d" RET), 0, true},
    {"read back at rbp, which is rsp", CODE(SAVE "\x55\x48\x89\xe5" ALL "\x48\x8b\x4d\0\x5d" RET),
     0, false},
    {"at r11, by lea and add",
     CODE("\x4c\x8d\x5c\x24\xe8\x49\x83\xc3\x08\x49\x89\x4b\x08" ALL READ RET), 0, false},
    {"at r11, by sub", CODE("\x49\x89\xe3\x49\x83\xeb\x08\x49\x89\x0b" ALL READ RET), 0, false},
    {"at r11, which is rounded", CODE("\x49\x89\xe3\x49\x83\xe3\xc0\x49\x89\x0b" ALL READ RET), 0,
     false},
    {"at an index", CODE("\x49\x89\xe3\x4a\x89\x0c\x18" ALL READ RET), 0, false},
    {"at rbp, which is none", CODE("\x48\x89\x4d\xf8" ALL READ RET), 0, true},
    {"by way of another register",
     CODE("\x48\x89\xcb\x48\x89\xda\x31\xdb\x31\xc9\x48\x89\xd1" MOST "\x48\x89\xd1" RET), 0,
     false},
    {"read back as rdx", CODE(SAVE ALL "\x48\x8b\x54\x24\xf8" RET), 0, true},
    {"read back on another way", CODE(SAVE "\x74\x17" ALL RET READ RET), 0, true},
    {"read back and written again", CODE(SAVE ALL READ "\x31\xc9" RET), 0, true},
    {"a result, read back after a call",
     CODE(MOST "\xe8\x10\0\0\0\x48\x89\x44\x24\xf8\xe8\6\0\0\0\x48\x8b\x44\x24\xf8"
               "\xc3\x31\xc0\xc3"),
     44, true},
};

#define MADE_UP 0x400000u

static size_t read_made_up(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    const struct code *code = context;
    const uint64_t at = addr - MADE_UP;
    const size_t got = at < code->len ? min_u64(len, code->len - at) : 0;
    memcpy(out, code->bytes + at, got);
    return got;
}

static uint64_t function_of_made_up(void *context, uint64_t addr)
{
    const struct code *code = context;
    return addr - MADE_UP < code->function_bytes ? MADE_UP : 0;
}

static void the_walk_counts_what_certainly_belongs_to_the_function(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct code code = cases[i];
        const struct changed_source source = {.code = {.read = read_made_up, .context = &code},
                                              .function_of = function_of_made_up};
        if (changed_registers_are_all(MADE_UP, &source) != code.changes_all) {
            fail_msg("%s: wanted %d", code.name, code.changes_all);
        }
    }
}

static void each_of_the_nine_is_needed(void **state)
{
    (void)state;
    // xor of each register with itself: rax, rcx, rdx, rsi, rdi, r8 to r11.
    static const char writes[9][4] = {"\x48\x31\xc0", "\x48\x31\xc9", "\x48\x31\xd2",
                                      "\x48\x31\xf6", "\x48\x31\xff", "\x4d\x31\xc0",
                                      "\x4d\x31\xc9", "\x4d\x31\xd2", "\x4d\x31\xdb"};
    for (size_t omitted = 0; omitted <= ARRAY_LEN(writes); omitted++) {
        char bytes[32] = {0};
        struct code code = {.bytes = bytes};
        for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
            if (i != omitted) {
                memcpy(bytes + code.len, writes[i], 3);
                code.len += 3;
            }
        }
        bytes[code.len++] = '\xc3';
        const struct changed_source source = {.code = {.read = read_made_up, .context = &code},
                                              .function_of = function_of_made_up};
        assert_int_equal(changed_registers_are_all(MADE_UP, &source), omitted == ARRAY_LEN(writes));
    }
}

// Whatever is behind may restore registers.
static void a_function_that_is_too_large_is_not_believed(void **state)
{
    (void)state;
    static char bytes[30000];
    for (size_t len = 100; len <= sizeof(bytes); len += sizeof(bytes) - 100) {
        struct code code = {.bytes = bytes, .len = len};
        memset(bytes, '\x90', len);
        memcpy(bytes, ALL, sizeof(ALL) - 1);
        bytes[len - 1] = '\xc3';
        const struct changed_source source = {.code = {.read = read_made_up, .context = &code},
                                              .function_of = function_of_made_up};
        assert_int_equal(changed_registers_are_all(MADE_UP, &source), len == 100);
    }
}

static size_t read_own(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    (void)context;
    const struct iovec local = {out, len};
    const struct iovec remote = {(void *)addr, len};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

// By the names that libc exports, which suffice for its allocator.
static uint64_t function_of_name(void *context, uint64_t addr)
{
    Dl_info info;
    (void)context;
    return dladdr((const void *)addr, &info) != 0 ? (uintptr_t)info.dli_saddr : 0;
}

static void the_allocator_of_libc_changes_all(void **state)
{
    (void)state;
    static const char *const names[] = {"malloc", "free", "calloc"};
    void *libc = dlopen(LIBC_SO, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(libc);
    const struct changed_source source = {.code = {.read = read_own},
                                          .function_of = function_of_name};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_true(changed_registers_are_all((uintptr_t)dlsym(libc, names[i]), &source));
    }
    assert_false(changed_registers_are_all((uintptr_t)dlsym(libc, "abs"), &source));
    (void)dlclose(libc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_walk_counts_what_certainly_belongs_to_the_function),
        cmocka_unit_test(each_of_the_nine_is_needed),
        cmocka_unit_test(a_function_that_is_too_large_is_not_believed),
        cmocka_unit_test(the_allocator_of_libc_changes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
