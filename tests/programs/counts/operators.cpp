// SPDX-License-Identifier: MIT
// TRUTH: allocations=11 frees=11 allocated_bytes=2432 temporary=2 peak_bytes=2296
// TRUTH: live_bytes=0 live_blocks=0
//
// operator new and delete in every form: plain, array, nothrow, aligned, sized. A failed one does
// not count itself. Its exception takes 136 bytes, freed at once; the nothrow form throws one too,
// inside libstdc++.
#include <cstddef>
#include <new>

namespace
{
volatile std::size_t huge = static_cast<std::size_t>(-1) / 4;

bool throws_bad_alloc()
{
    try {
        ::operator delete(::operator new(huge));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}
} // namespace

int main()
{
    const auto aligned = std::align_val_t{64};
    void *plain = ::operator new(100);
    void *array = ::operator new[](200);
    void *quiet = ::operator new(300, std::nothrow);
    void *quiet_array = ::operator new[](400, std::nothrow);
    void *wide = ::operator new(128, aligned);
    void *wide_array = ::operator new[](192, aligned);
    void *wide_quiet = ::operator new(256, aligned, std::nothrow);
    void *wide_quiet_array = ::operator new[](320, aligned, std::nothrow);
    int *object = new int[66]();
    if (!throws_bad_alloc() || ::operator new(huge, std::nothrow) != nullptr) {
        return 1;
    }
    ::operator delete(plain);
    ::operator delete[](array, std::size_t{200});
    ::operator delete(quiet, std::nothrow);
    ::operator delete[](quiet_array, std::nothrow);
    ::operator delete(wide, aligned);
    ::operator delete[](wide_array, aligned);
    ::operator delete (wide_quiet, std::size_t{256}, aligned);
    ::operator delete[](wide_quiet_array, aligned, std::nothrow);
    delete[] object;
    return 0;
}
