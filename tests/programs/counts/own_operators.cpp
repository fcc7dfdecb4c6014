// SPDX-License-Identifier: MIT
// TRUTH: allocations=400 frees=400 allocated_bytes=9600 temporary=400 peak_bytes=24
// TRUTH: live_bytes=0 live_blocks=0
//
// A program that replaces one form of operator new and of delete. The runtime's other forms call
// these, so a block of any form has the program's header.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace
{
constexpr std::size_t header_bytes = 16;
constexpr char header_mark = 42;
int freed = 0;

void use(void *block)
{
    if (static_cast<char *>(block)[-1] != header_mark) {
        std::abort();
    }
}
} // namespace

void *operator new(std::size_t size)
{
    char *block = static_cast<char *>(std::malloc(size + header_bytes)) + header_bytes;
    block[-1] = header_mark;
    return block;
}

void operator delete(void *block) noexcept
{
    use(block);
    freed++;
    std::free(static_cast<char *>(block) - header_bytes);
}

int main()
{
    for (int i = 0; i < 100; i++) {
        void *plain = ::operator new(8);
        use(plain);
        ::operator delete (plain, std::size_t{8});
        void *array = ::operator new[](8);
        use(array);
        ::operator delete[](array);
        void *quiet = ::operator new(8, std::nothrow);
        use(quiet);
        ::operator delete(quiet, std::nothrow);
        void *quiet_array = ::operator new[](8, std::nothrow);
        use(quiet_array);
        ::operator delete[](quiet_array, std::size_t{8});
    }
    return freed == 400 ? 0 : 1;
}
