// SPDX-License-Identifier: MIT
// Tests of self_memory: outside of the stack every page is checked before it is read.
#include "target/unwind/environment/self_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/page_alloc.h"

enum {
    PAGES = 6,
    HOLE = 4, // cannot be read
};

// Read pages in the order of the addresses, in reverse, and again and again: a result for one page
// is never used for another.
static void what_cannot_be_read_is_not_read(void **state)
{
    (void)state;
    uint8_t *pages =
        mmap(NULL, PAGES * PAGE_GRAIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < PAGES; i++) {
        *(uint64_t *)(void *)(pages + i * PAGE_GRAIN) = 100 + i;
    }
    assert_int_equal(mprotect(pages + HOLE * PAGE_GRAIN, PAGE_GRAIN, PROT_NONE), 0);
    static const size_t order[] = {0, 1, 2, 3, 4, 5, 3, 4, 2, 1, 0, 5, 5, 4, 0, 3, 4};
    const struct stack_bounds nowhere = {0};
    struct self_memory self = self_memory_over(&nowhere);
    uint64_t word = 77;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        const uint64_t addr = (uint64_t)pages + order[i] * PAGE_GRAIN;
        assert_int_equal(self.reader.read(&self.reader, addr, &word), order[i] != HOLE);
        assert_true(order[i] == HOLE || word == 100 + order[i]);
        assert_false(self.reader.read(&self.reader, 8, &word));
    }
    const uint64_t hole = (uint64_t)pages + HOLE * PAGE_GRAIN;
    assert_true(self.reader.read(&self.reader, hole - 8, &word));
    assert_false(self.reader.read(&self.reader, hole - 4, &word)); // half of the word is behind it
    assert_false(self.reader.read(&self.reader, UINT64_MAX - 3, &word));
    assert_int_equal(munmap(pages, PAGES * PAGE_GRAIN), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
