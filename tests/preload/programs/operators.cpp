// SPDX-License-Identifier: MIT
// operators: every form of operator new and delete, and what they throw. The journal is the truth.
#include <cstdlib>
#include <new>

#include "journal.h"

static void check(bool condition, int line)
{
    if (!condition) {
        dprintf(2, "operators.cpp:%d: unexpected\n", line);
        _exit(98);
    }
}
#define CHECK(condition) check(condition, __LINE__)

static void *got(void *block, size_t size)
{
    note("alloc", block, size, nullptr);
    return block;
}

template <typename Delete> static void give(void *block, Delete remove)
{
    note("free", block, 0, nullptr);
    remove(block);
}

static int handler_calls;
static void handler()
{
    handler_calls++;
    std::set_new_handler(nullptr);
}

int main()
{
    const std::align_val_t a{64};
    const size_t huge = static_cast<size_t>(1) << 62;
    journal_mark();
    give(got(::operator new(11), 11), [](void *p) { ::operator delete(p); });
    give(got(::operator new[](12), 12), [](void *p) { ::operator delete[](p); });
    give(got(::operator new(13), 13), [](void *p) { ::operator delete(p, 13); });
    give(got(::operator new[](14), 14), [](void *p) { ::operator delete[](p, 14); });
    give(got(::operator new(15, std::nothrow), 15),
         [](void *p) { ::operator delete(p, std::nothrow); });
    give(got(::operator new[](16, std::nothrow), 16),
         [](void *p) { ::operator delete[](p, std::nothrow); });
    give(got(::operator new(128, a), 128), [a](void *p) { ::operator delete(p, a); });
    give(got(::operator new[](192, a), 192), [a](void *p) { ::operator delete[](p, a); });
    give(got(::operator new(256, a), 256), [a](void *p) { ::operator delete(p, 256, a); });
    give(got(::operator new[](320, a), 320), [a](void *p) { ::operator delete[](p, 320, a); });
    give(got(::operator new(384, a, std::nothrow), 384),
         [a](void *p) { ::operator delete(p, a, std::nothrow); });
    give(got(::operator new[](448, a, std::nothrow), 448),
         [a](void *p) { ::operator delete[](p, a, std::nothrow); });
    journal_mark(); // an exception is a block too, of a size that is the runtime's affair
    CHECK(::operator new(huge, std::nothrow) == nullptr);
    std::set_new_handler(handler);
    bool thrown = false;
    try {
        CHECK(::operator new(huge) != nullptr);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown && handler_calls == 1);
    journal_print();
    return 0;
}
