// SPDX-License-Identifier: MIT
// byte_weight: the weight of a sampled block, which is the number of blocks that it stands for.
//
// Sampling chooses one block in about `interval` allocated bytes. The interval is BYTES of
// `cairn record --sample=BYTES`, or that of a sampling level (session/books/sampling_level.h).
//
// A block of `size` bytes is chosen with the probability p = 1 - exp(-(size + 1) / interval)
// (target/producer/byte_sampler.h). It stands for 1 / p blocks on average: Horvitz and Thompson's
// estimator, as pprof and jeprof apply it to the samples of tcmalloc, jemalloc and Go. Weights are
// powers of two, so that all sums stay whole numbers. 1 / p is between two of them; one is drawn,
// so that their mean is 1 / p. This adds at most an eighth to the variance. For a weight W, W * (W
// - 1) * size^2 is an unbiased estimate of the variance that the block adds. Context: H, one
// thread; pure.
#pragma once

#include <stdint.h>

#define BYTE_WEIGHT_MEAN_MAX  ((uint64_t)64 << 20)
#define BYTE_WEIGHT_SHIFT_MAX 27u

// Return the shift of a chosen block: it stands for 1 << shift blocks. `interval_bytes` is 1 to
// BYTE_WEIGHT_MEAN_MAX. *random is the state of the random numbers.
uint32_t byte_weight_shift(uint64_t *random, uint64_t interval_bytes, uint64_t size_bytes);
