// SPDX-License-Identifier: MIT
// cpp_leaf: a library that takes nothing of the C++ runtime but operator new, so that nothing else
// in it leads there.
#include <new>

#include <cstddef>

extern "C" void *leaf_allocate(size_t size)
{
    return ::operator new(size);
}
