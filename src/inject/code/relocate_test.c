// SPDX-License-Identifier: MIT
// relocate_test: moved instructions and refusals, by bytes that were computed by hand.
//
// The functions of libraries are in relocate_libraries_test.c. Context: H, one thread. x86-64.
#include "inject/code/relocate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

#define ENTRY      0x10000u
#define TRAMPOLINE 0x20000u

enum {
    BYTES_MAX = 64
};

struct sample {
    const char *what;
    uint8_t code[BYTES_MAX];
    uint8_t size_bytes; // of the function; 0: unknown
    uint8_t len;        // readable
    enum relocate_refusal refusal;
    uint8_t moved[BYTES_MAX]; // wanted in the trampoline
    uint8_t moved_len;
    uint8_t moves[4]; // wanted: from, to, ..., 0
};

static const struct sample samples[] = {
    // Targets: 0x10008 - 0x2000d = -0x10005 wherever nothing grows.
    {"push, mov, sub",
     {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc3},
     9,
     9,
     RELOCATE_OK,
     {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     13,
     {1, 1, 4, 4}},
    {"endbr64, xor, ret",
     {0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0xc3},
     7,
     7,
     RELOCATE_OK,
     {0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     11,
     {4, 4}},
    // mov 0x10(%rip),%rax: 0x10017 - 0x20007 = -0xfff0
    {"operand at rip",
     {0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0xc3},
     8,
     8,
     RELOCATE_OK,
     {0x48, 0x8b, 0x05, 0x10, 0x00, 0xff, 0xff, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     12,
     {0}},
    {"operand at rip, then a number",
     {0x83, 0x3d, 0x10, 0, 0, 0, 5, 0xc3},
     8,
     8,
     RELOCATE_OK,
     {0x83, 0x3d, 0x10, 0x00, 0xff, 0xff, 5, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     12,
     {0}},
    // je to 0x10025: - 0x20009 = -0xffe4; back to 0x10005: - 0x2000e = -0x10009
    {"a short branch grows",
     {0x48, 0x85, 0xff, 0x74, 0x20, 0x90},
     6,
     6,
     RELOCATE_OK,
     {0x48, 0x85, 0xff, 0x0f, 0x84, 0x1c, 0x00, 0xff, 0xff, 0xe9, 0xf7, 0xff, 0xfe, 0xff},
     14,
     {3, 3}},
    // jge to 0x10026: - 0x20009; then the nop is at 9 instead of 5, but it is not moved
    {"a long branch stays long",
     {0x0f, 0x8d, 0x20, 0, 0, 0, 0xc3},
     7,
     7,
     RELOCATE_OK,
     {0x0f, 0x8d, 0x20, 0x00, 0xff, 0xff, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     11,
     {0}},
    {"two short branches move the third instruction",
     {0x74, 0x20, 0x75, 0x20, 0x48, 0x31, 0xc0, 0xc3},
     8,
     8,
     RELOCATE_OK,
     {0x0f, 0x84, 0x1c, 0x00, 0xff, 0xff, 0x0f, 0x85, 0x18, 0x00,
      0xff, 0xff, 0x48, 0x31, 0xc0, 0xe9, 0xf3, 0xff, 0xfe, 0xff},
     20,
     {2, 6, 4, 12}},
    // jmp to 0x11000: - 0x20005 = -0xf005
    {"a forwarder has no way back",
     {0xe9, 0xfb, 0x0f, 0, 0},
     5,
     5,
     RELOCATE_OK,
     {0xe9, 0xfb, 0x0f, 0xff, 0xff},
     5,
     {0}},
    {"a forwarder through memory",
     {0xff, 0x25, 0x10, 0, 0, 0},
     6,
     6,
     RELOCATE_OK,
     {0xff, 0x25, 0x10, 0x00, 0xff, 0xff},
     6,
     {0}},
    {"a short forwarder with padding",
     {0xeb, 0x1e, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc},
     2,
     8,
     RELOCATE_OK,
     {0xe9, 0x1b, 0x00, 0xff, 0xff},
     5,
     {0}},
    {"a call",
     {0xe8, 0xfb, 0x0f, 0, 0, 0xc3},
     6,
     6,
     RELOCATE_OK,
     {0xe8, 0xfb, 0x0f, 0xff, 0xff, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     10,
     {0}},
    {"a call of itself meets the hook again",
     {0xe8, 0xfb, 0xff, 0xff, 0xff, 0xc3},
     6,
     6,
     RELOCATE_OK,
     {0xe8, 0xfb, 0xff, 0xfe, 0xff, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     10,
     {0}},
    {"ret and padding", {0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0}, 1, 8, RELOCATE_OK, {0xc3}, 1, {0}},
    {"ret and padding of an unsized function",
     {0xf3, 0xc3, 0x90, 0x90, 0x90, 0x66, 0x66, 0x90},
     0,
     8,
     RELOCATE_OK,
     {0xf3, 0xc3},
     2,
     {0}},
    {"bnd jmp loses its prefix",
     {0xf2, 0xe9, 0xfa, 0x0f, 0, 0},
     6,
     6,
     RELOCATE_OK,
     {0xe9, 0xfb, 0x0f, 0xff, 0xff},
     5,
     {0}},
    {"a jump to an unsized function's entry is another function's",
     {0x48, 0xff, 0xc7, 0x90, 0x90, 0xc3, 0xeb, 0xf8},
     0,
     8,
     RELOCATE_OK,
     {0x48, 0xff, 0xc7, 0x90, 0x90, 0xe9, 0xfb, 0xff, 0xfe, 0xff},
     10,
     {3, 3, 4, 4}},

    {"ret and code",
     {0xc3, 0x55, 0x48, 0x89, 0xe5, 0xc3, 0x90, 0x90},
     1,
     8,
     RELOCATE_TOO_SHORT,
     {0},
     0,
     {0}},
    {"ret, too little padding",
     {0xc3, 0x90, 0x90, 0x90, 0x90, 0x55, 0x90, 0x90},
     1,
     8,
     RELOCATE_TOO_SHORT,
     {0},
     0,
     {0}},
    {"ret and the end of readable memory",
     {0xc3, 0x90, 0x90},
     1,
     3,
     RELOCATE_TOO_SHORT,
     {0},
     0,
     {0}},
    {"ret in front of more of the function",
     {0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90},
     8,
     8,
     RELOCATE_TOO_SHORT,
     {0},
     0,
     {0}},
    {"it runs on into the next function",
     {0x90, 0x90, 0x55, 0x48, 0x89, 0xe5},
     2,
     6,
     RELOCATE_TOO_SHORT,
     {0},
     0,
     {0}},
    {"a loop into the first bytes",
     {0x31, 0xc0, 0xff, 0xc0, 0x90, 0xeb, 0xfb},
     7,
     7,
     RELOCATE_BRANCH_INTO,
     {0},
     0,
     {0}},
    {"a branch among the first bytes into them",
     {0x74, 0x01, 0x90, 0x90, 0x90, 0xc3},
     6,
     6,
     RELOCATE_BRANCH_INTO,
     {0},
     0,
     {0}},
    {"a loop to the entry",
     {0x48, 0xff, 0xc7, 0x90, 0x90, 0xeb, 0xf9},
     7,
     7,
     RELOCATE_BRANCH_INTO,
     {0},
     0,
     {0}},
    {"a loop behind data",
     {0x48, 0xff, 0xc7, 0x90, 0x90, 0xc3, 0x06, 0x06, 0x7c, 0xf9},
     10,
     10,
     RELOCATE_BRANCH_INTO,
     {0},
     0,
     {0}},
    {"jrcxz", {0xe3, 0x10, 0x90, 0x90, 0x90, 0xc3}, 6, 6, RELOCATE_UNMOVABLE, {0}, 0, {0}},
    {"loop", {0xe2, 0x10, 0x90, 0x90, 0x90, 0xc3}, 6, 6, RELOCATE_UNMOVABLE, {0}, 0, {0}},
    {"xbegin", {0xc7, 0xf8, 0x10, 0, 0, 0, 0xc3}, 7, 7, RELOCATE_UNMOVABLE, {0}, 0, {0}},
    {"operand at eip",
     {0x67, 0x8b, 0x05, 0x10, 0, 0, 0, 0xc3},
     8,
     8,
     RELOCATE_UNMOVABLE,
     {0},
     0,
     {0}},
    {"a call that returns inside",
     {0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3},
     6,
     6,
     RELOCATE_CALL_RETURNS_INTO,
     {0},
     0,
     {0}},
    {"a probe at the entry",
     {0xcc, 0x48, 0x89, 0xe5, 0xc3, 0x90},
     6,
     6,
     RELOCATE_BREAKPOINT,
     {0},
     0,
     {0}},
    {"a debugger's breakpoint after push and mov",
     {0x55, 0x48, 0x89, 0xe5, 0xcc, 0x90},
     6,
     6,
     RELOCATE_BREAKPOINT,
     {0},
     0,
     {0}},
    {"no instruction",
     {0x06, 0x90, 0x90, 0x90, 0x90, 0xc3},
     6,
     6,
     RELOCATE_UNDECODABLE,
     {0},
     0,
     {0}},
    {"an instruction beyond the end",
     {0x90, 0x48, 0x8b, 0x05, 0x10, 0, 0, 0},
     6,
     8,
     RELOCATE_UNDECODABLE,
     {0},
     0,
     {0}},
    {"not wholly readable",
     {0x90, 0x90, 0x90, 0x90, 0x90, 0x90},
     7,
     6,
     RELOCATE_UNDECODABLE,
     {0},
     0,
     {0}},
    {"nothing readable", {0}, 0, 0, RELOCATE_UNDECODABLE, {0}, 0, {0}},
};

static void first_instructions_move_or_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        const struct sample *sample = samples + i;
        struct relocated out = {0};
        const enum relocate_refusal refusal = relocate_prologue(
            (struct bytes){sample->code, sample->len}, sample->size_bytes, ENTRY, TRAMPOLINE, &out);
        bool is_right = refusal == sample->refusal && out.code_len == sample->moved_len &&
                        memcmp(out.code, sample->moved, out.code_len) == 0;
        for (size_t m = 0; m < out.move_count && m < 2; m++) {
            is_right = is_right && out.moves[m].from == sample->moves[2 * m] &&
                       out.moves[m].to == sample->moves[2 * m + 1];
        }
        is_right =
            is_right && (out.move_count == 2 || sample->moves[(size_t)2 * out.move_count] == 0);
        if (!is_right) {
            print_error("%s: refused '%s', wanted '%s'; %u bytes:", sample->what,
                        relocate_refusal_text(refusal), relocate_refusal_text(sample->refusal),
                        out.code_len);
            for (size_t b = 0; b < out.code_len; b++) {
                print_error(" %02x", out.code[b]);
            }
            print_error("; %u moves\n", out.move_count);
            fail();
        }
    }
}

static void addresses_beyond_two_gigabytes_are_refused(void **state)
{
    (void)state;
    static const uint8_t push[] = {0x55, 0x48, 0x89, 0xe5, 0x90, 0xc3};
    static const uint8_t operand[] = {0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0xc3};
    const uint64_t far = ENTRY + (uint64_t)0x80000000u;
    struct relocated out;
    assert_int_equal(
        relocate_prologue((struct bytes){push, sizeof(push)}, sizeof(push), ENTRY, far + 64, &out),
        RELOCATE_OUT_OF_REACH);
    assert_int_equal(relocate_prologue((struct bytes){operand, sizeof(operand)}, sizeof(operand),
                                       ENTRY, far + 64, &out),
                     RELOCATE_OUT_OF_REACH);
    uint8_t jump[PATCH_BYTES];
    assert_int_equal(relocate_write_jump(ENTRY, far + 4, jump), RELOCATE_OK);
    static const uint8_t furthest[] = {0xe9, 0xff, 0xff, 0xff, 0x7f};
    assert_memory_equal(jump, furthest, sizeof(jump));
    assert_int_equal(relocate_write_jump(ENTRY, far + 5, jump), RELOCATE_OUT_OF_REACH);
    assert_int_equal(relocate_write_jump(far, far - 0x7ffffffbu, jump), RELOCATE_OK);
    assert_int_equal(relocate_write_jump(far, far - 0x7ffffffcu, jump), RELOCATE_OUT_OF_REACH);
}

static void a_stub_passes_its_index(void **state)
{
    (void)state;
    static const uint8_t wanted[STUB_BYTES] = {
        0x68, 0x44, 0x33, 0x22, 0x11,                   // push $0x11223344
        0xff, 0x25, 5,    0,    0,    0,                // jmp *5(%rip): byte 16
        0xcc, 0xcc, 0xcc, 0xcc, 0xcc,                   //
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // the hook
        0,    0,    0,    0,    0,    0,    0,    0,    //
    };
    uint8_t stub[STUB_BYTES];
    relocate_write_stub(&(struct relocated){0}, 0x11223344, 0x1122334455667788, stub);
    assert_memory_equal(stub, wanted, sizeof(stub));
}

static void a_stub_of_the_abi_jumps_directly_where_it_can(void **state)
{
    (void)state;
    static const uint8_t direct[STUB_BYTES] = {
        0x4c, 0x8d, 0x05, 0x19, 0,    0, 0,    // lea 25(%rip), %r8: byte 32
        0xe9, 0xff, 0xff, 0xff, 0x7f,          // jmp
        0xcc, 0xcc, 0xcc, 0xcc,                //
        0x0b, 0x10, 0x40, 0x80, 0,    0, 0, 0, // the hook
    };
    static const uint8_t indirect[STUB_BYTES] = {
        0x4c, 0x8d, 0x05, 0x19, 0, 0, 0,    // the same
        0xff, 0x25, 3,    0,    0, 0,       // jmp *3(%rip): byte 16
        0xcc, 0xcc, 0xcc,                   //
        0x0c, 0x10, 0x40, 0x80, 0, 0, 0, 0, // one byte further
    };
    const uint64_t stub_addr = 0x401000;
    const uint64_t furthest = stub_addr + 12 + INT32_MAX;
    uint8_t stub[STUB_BYTES];
    relocate_write_abi_stub(stub_addr, furthest, stub);
    assert_memory_equal(stub, direct, sizeof(stub));
    relocate_write_abi_stub(stub_addr, furthest + 1, stub);
    assert_memory_equal(stub, indirect, sizeof(stub));

    // Before the trampoline, which follows.
    static const uint8_t nothrow[] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
    relocate_write_abi_nothrow(0x1122334455667788, stub);
    assert_memory_equal(stub, indirect, STUB_BYTES - sizeof(nothrow));
    assert_memory_equal(stub + STUB_BYTES - sizeof(nothrow), nothrow, sizeof(nothrow));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_instructions_move_or_are_refused),
        cmocka_unit_test(addresses_beyond_two_gigabytes_are_refused),
        cmocka_unit_test(a_stub_passes_its_index),
        cmocka_unit_test(a_stub_of_the_abi_jumps_directly_where_it_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
