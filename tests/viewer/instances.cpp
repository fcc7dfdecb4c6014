// SPDX-License-Identifier: MIT
// instances: 30 instances of one template, whose names differ in the last argument alone. Each
// leaks one block. A function of a long name leaks on two lines.
#include <cstdlib>
#include <utility>

struct the_policy_that_all_share {
};
void *volatile kept[30];

template <class Policy, int N> [[gnu::noinline]] void remember_the_order_of()
{
    kept[N] = malloc(100 + N);
}

template <int... N> void remember_all(std::integer_sequence<int, N...>)
{
    (remember_the_order_of<the_policy_that_all_share, N>(), ...);
}

[[gnu::noinline]] void remember_on_two_lines_of_a_long_name()
{
    kept[0] = malloc(9000);
    kept[1] = malloc(8000);
}

int main()
{
    remember_on_two_lines_of_a_long_name();
    remember_all(std::make_integer_sequence<int, 30>());
}
