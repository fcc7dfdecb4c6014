// SPDX-License-Identifier: MIT
// rule_cache: the rules of all return addresses seen so far, for the whole process.
//
// A set-associative hash table of (key ^ rule, rule) pairs, four to a cache line. A pair is written
// and read with two plain atomic accesses. A pair torn by a race fails its check and counts as
// missing, so there are no locks and no fences. A full line loses an entry, which is compiled again
// when needed. The table begins with 16 KiB. When it is three quarters full, one four times as
// large replaces it, up to 4 MiB; replaced tables stay, since a thread may be reading them.
// Flushing changes the salt that is mixed into every key and then wipes the table, so an entry that
// a thread writes late, after beginning before the flush, is never found. Owns: its tables, never
// freed. Context: T and H, any thread, signal handlers included. Failure: if a larger table cannot
// be mapped, the small one continues to lose entries.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct rule_entry {
    _Atomic uint64_t check; // key ^ rule
    _Atomic uint64_t rule;
};

#define RULE_LINE_ENTRIES 4u

struct rule_table {
    uint32_t shift; // 64 - log2 of the entries' size in bytes
    _Atomic uint32_t used;
    char *memory; // the entries, aligned to a line
};

struct rule_cache {
    _Atomic(struct rule_table *) table;
    _Atomic uint64_t generation; // counts flushes
    _Atomic bool unknown_code;   // since the last flush, a rule was made for a pc in no module
};

extern struct rule_cache g_rule_cache __attribute__((visibility("hidden")));

// The cache as one walk sees it.
struct rule_view {
    struct rule_table *table;
    uint64_t salt;
    bool is_guess; // the pcs may not be return addresses; see module_copy.h
};

ALWAYS_INLINE uint64_t rule_cache_generation(void)
{
    // Acquire pairs with the release in rule_cache_flush: the flusher's code is unloaded by then.
    return atomic_load_explicit(&g_rule_cache.generation, memory_order_acquire);
}

ALWAYS_INLINE struct rule_view rule_cache_view(void)
{
    return (struct rule_view){
        // Acquire pairs with the release in grow(): the table is filled in.
        .table = atomic_load_explicit(&g_rule_cache.table, memory_order_acquire),
        .salt = rule_cache_generation() * 0x9e3779b97f4a7c15ULL,
    };
}

// Fibonacci hashing; the high bits are the good ones. Few operations, because in a walk the lookups
// of the frames depend on each other.
ALWAYS_INLINE struct rule_entry *rule_cache_line(const struct rule_table *table, uint64_t key)
{
    const uint64_t line_mask = ~(uint64_t)(RULE_LINE_ENTRIES * sizeof(struct rule_entry) - 1);
    uint64_t offset = key * 0x9e3779b97f4a7c15ULL >> table->shift & line_mask;
    return (struct rule_entry *)(void *)(table->memory + offset);
}

// Return the rule of the return address `pc`, or 0 if it is not cached. `pc` is not 0.
ALWAYS_INLINE uint64_t rule_cache_find(struct rule_view view, uint64_t pc)
{
    uint64_t key = pc ^ view.salt;
    struct rule_entry *line = rule_cache_line(view.table, key);
    for (uint32_t i = 0; i < RULE_LINE_ENTRIES; i++) {
        uint64_t check = atomic_load_explicit(&line[i].check, memory_order_relaxed);
        uint64_t rule = atomic_load_explicit(&line[i].rule, memory_order_relaxed);
        if (LIKELY((check ^ rule) == key)) {
            return rule;
        }
    }
    return 0;
}

// Compile the rule of `pc` by the tables of its module, and cache it. Never 0. A guessed pc without
// obtainable tables gets the rule "no table", which is not cached. The parameters are the parts of
// a view: one that is passed by value would be copied through memory at each lookup.
uint64_t rule_cache_fill(struct rule_table *table, uint64_t salt, bool is_guess, uint64_t pc);

ALWAYS_INLINE uint64_t rule_cache_get(struct rule_view view, uint64_t pc)
{
    uint64_t rule = rule_cache_find(view, pc);
    return LIKELY(rule != 0) ? rule : rule_cache_fill(view.table, view.salt, view.is_guess, pc);
}

// Whether a cached rule says "no table" for code outside of all modules. A module loaded at that
// place later would not be looked up.
ALWAYS_INLINE bool rule_cache_has_unknown_code(void)
{
    return atomic_load_explicit(&g_rule_cache.unknown_code, memory_order_relaxed);
}

// Void every cached rule.
void rule_cache_flush(void);
