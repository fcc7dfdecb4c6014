// SPDX-License-Identifier: MIT
// TRUTH: allocations=0 frees=0 allocated_bytes=0 temporary=0 peak_bytes=0
// TRUTH: live_bytes=0 live_blocks=0
//
// Never allocates. Its recording shows the allocation of the C++ run-time before main: the pool for
// exceptions that the tests add to the truth of every C++ program.
#include <string>

int main()
{
    const std::string kept_inside = "short";
    return kept_inside.size() == 5 ? 0 : 1;
}
