// SPDX-License-Identifier: MIT
// hash: the integer mixers shared by both sides of a session.
//
// Both never change within one session version: target and recorder compute the same names.
// Context: T and H; pure.
#pragma once

#include <stdint.h>

// A bijective finalizer with full avalanche (constants of MurmurHash3's 64-bit finalizer).
static inline uint64_t hash_mix(uint64_t value)
{
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdULL;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53ULL;
    value ^= value >> 33;
    return value;
}

// Return the name of the stack node that a frame at `pc` reaches from the node named `parent`. Only
// the root is named 0. One 64x64->128 multiplication: this is on the hot path.
static inline uint64_t stack_name(uint64_t parent, uint64_t pc)
{
    const uint64_t factor = (pc << 1 | 1) * 0xd6e8feb86659fd93ULL; // odd, so nothing is lost
    const unsigned __int128 product = (unsigned __int128)(parent ^ 0x9e3779b97f4a7c15ULL) * factor;
    uint64_t name = (uint64_t)product ^ (uint64_t)(product >> 64);
    return name != 0 ? name : 1;
}
