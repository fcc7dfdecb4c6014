// SPDX-License-Identifier: MIT
// test_steps: makes each access to shared memory a step of the test that defines test_step(), which
// may let another thread go on before it. The compiler includes this first, in the test and in what
// it tests. All accesses are sequentially consistent here; orders are the subject of
// tests/memory_order.
#pragma once

#include <stdatomic.h>

#include "exchange16_arch.h"

void test_step(void);

// NOLINTBEGIN(readability-identifier-naming): they stand for functions
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_load_explicit(at, order)         (test_step(), *(at))
#define atomic_store_explicit(at, value, order) (test_step(), (void)(*(at) = (value)))
#define atomic_fetch_add_explicit(at, n, order) (test_step(), (void)atomic_fetch_add(at, n))
#define atomic_fetch_sub_explicit(at, n, order) (test_step(), (void)atomic_fetch_sub(at, n))
#define atomic_compare_exchange_weak_explicit(at, expected, value, success, failure) \
    (test_step(), atomic_compare_exchange_strong(at, expected, value))
#define arch_exchange16(at, expected, value) (test_step(), arch_exchange16(at, expected, value))
// NOLINTEND(readability-identifier-naming)
