// SPDX-License-Identifier: MIT
// Tests of self_memory: outside of the stack every page is checked before it is read.
#include "target/unwind/environment/self_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/page.h"

enum {
    PARTS = 6, // each of one or more pages
    HOLE = 4,  // cannot be read
};

// Read parts in the order of the addresses, in reverse, and again and again: a result for one page
// is never used for another.
static void what_cannot_be_read_is_not_read(void **state)
{
    (void)state;
    uint8_t *parts = mmap(NULL, PARTS * PAGE_LARGEST, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(parts, MAP_FAILED);
    static const size_t words[] = {0, PAGE_GRAIN, PAGE_LARGEST - 8};
    for (size_t i = 0; i < PARTS * ARRAY_LEN(words); i++) {
        *(uint64_t *)(void *)(parts + i / ARRAY_LEN(words) * PAGE_LARGEST +
                              words[i % ARRAY_LEN(words)]) = 100 + i;
    }
    assert_int_equal(mprotect(parts + HOLE * PAGE_LARGEST, PAGE_LARGEST, PROT_NONE), 0);
    static const size_t order[] = {0, 1, 2, 3, 4, 5, 3, 4, 2, 1, 0, 5, 5, 4, 0, 3, 4};
    const struct stack_bounds nowhere = {0};
    struct self_memory self = self_memory_over(&nowhere);
    uint64_t word = 77;
    for (size_t i = 0; i < ARRAY_LEN(order) * ARRAY_LEN(words); i++) {
        const size_t part = order[i / ARRAY_LEN(words)];
        const size_t which = i % ARRAY_LEN(words);
        const uint64_t addr = (uint64_t)parts + part * PAGE_LARGEST + words[which];
        assert_int_equal(self.reader.read(&self.reader, addr, &word), part != HOLE);
        assert_true(part == HOLE || word == 100 + part * ARRAY_LEN(words) + which);
        assert_false(self.reader.read(&self.reader, 8, &word));
    }
    const uint64_t hole = (uint64_t)parts + HOLE * PAGE_LARGEST;
    assert_true(self.reader.read(&self.reader, hole - 8, &word));
    assert_false(self.reader.read(&self.reader, hole - 4, &word)); // half of the word is behind it
    assert_false(self.reader.read(&self.reader, UINT64_MAX - 3, &word));
    assert_int_equal(munmap(parts, PARTS * PAGE_LARGEST), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
