// SPDX-License-Identifier: MIT
// many: more of everything than a page shows at once.
//   leaf<N>  1500 functions; each is called from each of 64 ends of a tree of calls, and leaks
//            16 bytes: 96000 stacks, 96000 blocks, 1536000 bytes
// The tree of calls has 6 levels of left and right.
#include <cstdlib>
#include <utility>

#define KEEP __attribute__((noinline, noclone))

static void *volatile sink;

template <int N> KEEP void leaf()
{
    sink = malloc(16);
    asm volatile("" ::"i"(N) : "memory");
}

template <int... N> KEEP void all_leaves(std::integer_sequence<int, N...>)
{
    (leaf<N>(), ...);
}

KEEP void right(int level);

KEEP void left(int level)
{
    if (level == 0) {
        all_leaves(std::make_integer_sequence<int, 1500>());
    } else {
        left(level - 1);
        right(level - 1);
    }
    asm volatile("" ::: "memory");
}

KEEP void right(int level)
{
    if (level == 0) {
        all_leaves(std::make_integer_sequence<int, 1500>());
    } else {
        left(level - 1);
        right(level - 1);
    }
    asm volatile("" ::: "memory");
}

int main()
{
    left(6);
    return 0;
}
