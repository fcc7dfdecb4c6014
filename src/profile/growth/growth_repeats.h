// SPDX-License-Identifier: MIT
// growth_repeats: how often the same call stacks left blocks again.
//
// A leak leaves blocks by the same stacks for as long as it goes on. A start leaves blocks, too,
// but each of its stacks leaves them once, or in one short time. On a busy machine a start may last
// as long as the program, and its level then rises to the end.
//
//        time ->   |--------------------------------|
//   leak  stack 1   x   x  x     x   x   x  x    x      wide: each is a repeat
//   start stack 1   xx
//         stack 2        x
//         stack 3                xxx                    none is wide
//
// Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A moment in which a stack left blocks.
struct stack_birth {
    uint32_t stack;
    uint32_t slice;
};

// Return the number of moments of those stacks whose moments extend over at least a quarter of the
// time between the first and the last of all. Sorts `births`.
size_t growth_repeats_count(struct stack_birth *births, size_t count);
