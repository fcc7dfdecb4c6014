// SPDX-License-Identifier: MIT
// cpp_plugin: a C++ plugin of a C program: the runtime that it brings along is visible to it alone.
#include <new>

#include <cstdlib>

extern "C" void *leaf_allocate(size_t size); // cpp_leaf.cpp

extern "C" void *plugin_entry(size_t size)
{
    delete new (std::nothrow) char[size / 2]; // mismatched on purpose: both ends are malloc's
    try {
        ::operator delete(::operator new(static_cast<size_t>(1) << 62));
        abort();
    } catch (const std::bad_alloc &) {
    }
    try {
        ::operator delete(leaf_allocate(static_cast<size_t>(1) << 62));
        abort();
    } catch (const std::bad_alloc &) {
    }
    auto *aligned = ::operator new (size * 2, std::align_val_t{128});
    ::operator delete (aligned, std::align_val_t{128});
    ::operator delete(::operator new(size));
    return malloc(1);
}
