// SPDX-License-Identifier: MIT
// objects: C++ stacks, built with optimization: inlined functions, templates, lambdas, a virtual
// call, a constructor that runs before main, a destructor during unwinding and a handler after it.
// Chosen points as in calls.c.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

extern "C" __attribute__((noinline)) void *chosen_point(std::size_t size)
{
    void *block = std::malloc(size);
    std::memset(block, 0, size);
    return block;
}

namespace shop
{
struct base {
    virtual ~base() = default;
    virtual int serve(int size) = 0;
};

template <typename T> struct counter : base {
    __attribute__((noinline)) int serve(int size) override
    {
        chosen_point(static_cast<std::size_t>(size));
        return static_cast<int>(sizeof(T));
    }
};

static inline __attribute__((always_inline)) int inlined_twice(int size)
{
    chosen_point(static_cast<std::size_t>(size));
    return size + 1;
}

static inline __attribute__((always_inline)) int inlined_once(int size)
{
    return inlined_twice(size) * 2;
}

__attribute__((noinline)) int with_inlined(int size)
{
    return inlined_once(size) + 3;
}

struct early {
    early()
    {
        chosen_point(7101);
    }
};

static early g_early;

struct guard {
    ~guard()
    {
        chosen_point(7102);
    }
};

__attribute__((noinline)) void thrower(int depth)
{
    guard on_the_way_out;
    if (depth == 0) {
        throw std::runtime_error("as planned");
    }
    thrower(depth - 1);
}
} // namespace shop

int main()
{
    int sum = shop::with_inlined(7103);
    try {
        shop::thrower(0);
    } catch (const std::runtime_error &) {
        chosen_point(7104);
    }
    shop::counter<double> doubles;
    shop::base *served = &doubles;
    sum += served->serve(7105);
    std::function<int(int)> later = [&sum](int size) {
        chosen_point(static_cast<std::size_t>(size));
        return sum;
    };
    return later(7106) == 0;
}
