// SPDX-License-Identifier: MIT
// Damages real tables at random, between unreadable pages: reading one byte too many is a crash.
//
// Each round damages a few bytes of a copy of libc's or this program's table segment (or cuts it),
// looks up random pcs, executes the rows found, and repairs the damage. Nothing may crash, hang or
// leave the image; undamaged, the lookups must succeed.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/page.h"
#include "base/test_support/by_night.h"
#include "target/unwind/cfi/cfi.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/cfi/rule_compile.h"
#include "target/unwind/environment/module_table.h"

#define DAMAGES_MAX 8u
#define PAGE        PAGE_LARGEST // a part that is protected alone

struct copy {
    struct eh_table table;
    struct module_span span;
    uint8_t *mapping;
    size_t mapping_len;
};

static uint64_t g_random = 0x123456789abcdefULL;

static uint64_t next_random(void)
{
    g_random++;
    return hash_mix(g_random);
}

static bool read_imaginary(struct memory_reader *self, uint64_t addr, uint64_t *word)
{
    (void)self;
    *word = hash_mix(addr);
    return true;
}

// Copy the segment so that its last byte is the last before an unreadable page.
static void copy_tables(const void *code, struct copy *copy)
{
    assert_true(module_table_find((uint64_t)code, &copy->span));
    assert_true(module_table_unwind(&copy->span, &copy->table));
    struct bytes *bytes = &copy->table.image.bytes;
    size_t whole = (bytes->len + PAGE - 1) & ~(PAGE - 1);
    copy->mapping_len = whole + 2 * PAGE;
    copy->mapping =
        mmap(NULL, copy->mapping_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(copy->mapping != MAP_FAILED);
    assert_int_equal(mprotect(copy->mapping, PAGE, PROT_NONE), 0);
    assert_int_equal(mprotect(copy->mapping + PAGE + whole, PAGE, PROT_NONE), 0);
    uint8_t *start = copy->mapping + PAGE + whole - bytes->len;
    // By the kernel, since it is not a single object of this program's.
    const struct iovec from = {.iov_base = (void *)(uintptr_t)bytes->data, .iov_len = bytes->len};
    const struct iovec into = {.iov_base = start, .iov_len = bytes->len};
    assert_int_equal(process_vm_readv(getpid(), &into, 1, &from, 1, 0), bytes->len);
    bytes->data = start;
}

// Look up and execute. Returns whether a row was found.
static bool run_at(const struct eh_table *table, uint64_t pc)
{
    struct memory_reader memory = {.read = read_imaginary};
    struct eh_function function;
    struct cfi_row row;
    (void)rule_from_table(table, pc + 1);
    if (eh_find(table, pc, &function) != ERR_OK || cfi_row_at(&function, pc, &row) != ERR_OK) {
        return false;
    }
    struct cpu cpu = {.pc = pc + 1, .known = next_random()};
    bool last = false;
    enum err err = cfi_step(&function, &row, &memory, &cpu, &last);
    return err == ERR_OK || err == ERR_UNSUPPORTED || err == ERR_CORRUPT || err == ERR_LIMIT;
}

// Return an offset where damage matters: in the header, in its index, in the entries.
static size_t vulnerable_offset(const struct copy *copy)
{
    size_t header = (size_t)(copy->table.hdr_addr - copy->table.image.addr);
    size_t rest = copy->table.image.bytes.len - header;
    switch (next_random() % 8) {
    case 0:
        return header + next_random() % 12;
    case 1:
        return header + next_random() % (rest < 4096 ? rest : 4096);
    default:
        return header + next_random() % rest;
    }
}

static void damage_and_run(struct copy *copy, unsigned lookups)
{
    uint8_t *image = copy->mapping + (copy->table.image.bytes.data - copy->mapping);
    size_t offsets[DAMAGES_MAX];
    uint8_t kept[DAMAGES_MAX];
    unsigned count = 1 + (unsigned)(next_random() % DAMAGES_MAX);
    for (unsigned i = 0; i < count; i++) {
        offsets[i] = vulnerable_offset(copy);
        kept[i] = image[offsets[i]];
        image[offsets[i]] = (uint8_t)next_random();
    }
    uint64_t code_len = copy->span.end - copy->span.start;
    for (unsigned i = 0; i < lookups; i++) {
        (void)run_at(&copy->table, copy->span.start + next_random() % code_len);
    }
    for (unsigned i = count; i > 0; i--) {
        image[offsets[i - 1]] = kept[i - 1];
    }
}

static void run_all(const void *code)
{
    struct copy copy;
    copy_tables(code, &copy);
    unsigned rounds = getenv("CAIRN_TEST_LONG") != NULL ? 200000 : 3000 / step_by_day(6);
    assert_true(run_at(&copy.table, (uint64_t)code));
    for (unsigned i = 0; i < rounds; i++) {
        damage_and_run(&copy, 20);
    }
    assert_true(run_at(&copy.table, (uint64_t)code));
    // Cut at the front: the image then begins later and ends at the same place.
    struct eh_image *image = &copy.table.image;
    while (image->bytes.len > 64) {
        size_t cut = 1 + next_random() % (image->bytes.len / 16);
        image->bytes.data += cut;
        image->bytes.len -= cut;
        image->addr += cut;
        (void)run_at(&copy.table, (uint64_t)code);
        for (uint64_t at = eh_first(&copy.table), n = 0; n < 64 && eh_next(&copy.table, &at); n++) {
            struct eh_function function;
            if (eh_read_fde(&copy.table, at, &function) == ERR_OK) {
                (void)run_at(&copy.table, function.start);
            }
        }
    }
    assert_int_equal(munmap(copy.mapping, copy.mapping_len), 0);
}

static void damaged_tables_of_libc(void **state)
{
    (void)state;
    run_all((const void *)&getpid);
}

static void damaged_tables_of_this_program(void **state)
{
    (void)state;
    run_all((const void *)&run_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_tables_of_libc),
        cmocka_unit_test(damaged_tables_of_this_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
