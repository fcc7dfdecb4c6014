// SPDX-License-Identifier: MIT
// rule_cache: the rules of all return addresses seen so far, for the whole process.
//
// A set-associative hash table of (key ^ rule, rule) pairs, four to a cache line. A pair is written
// and read with two plain atomic accesses; one that is torn by a race fails its check and counts as
// missing, so there are no locks and no fences. A full line loses an entry, which is compiled again
// when it is needed. The table begins with 16 KiB and is replaced by one four times as large, up to
// 4 MiB, when it is three quarters full; replaced tables stay, since a thread may be reading them.
// Flushing changes the salt that is mixed into every key and then wipes the table, so that an entry
// that is written late by a thread that began before the flush is never found.
// Owns: its tables, never freed. Context: T and H, any thread, signal handlers included.
// Failure: if a larger table cannot be mapped, the small one goes on losing entries.
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

extern struct rule_cache g_rule_cache;

// The cache as one walk sees it.
struct rule_view {
    struct rule_table *table;
    uint64_t salt;
    bool is_guess; // the pcs are not known to be return addresses; see module_copy.h
};

ALWAYS_INLINE uint64_t rule_cache_generation(void)
{
    // Acquire pairs with the release in rule_cache_flush: what the flusher unloaded is unloaded.
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

// Fibonacci hashing; the high bits are the good ones. Few operations: in a walk each frame's lookup
// has to wait for the one before.
ALWAYS_INLINE struct rule_entry *rule_cache_line(const struct rule_table *table, uint64_t key)
{
    const uint64_t line_mask = ~(uint64_t)(RULE_LINE_ENTRIES * sizeof(struct rule_entry) - 1);
    uint64_t offset = key * 0x9e3779b97f4a7c15ULL >> table->shift & line_mask;
    return (struct rule_entry *)(void *)(table->memory + offset);
}

// Lets what rule_cache_find(view, pc) will look at come nearer.
ALWAYS_INLINE void rule_cache_prefetch(struct rule_view view, uint64_t pc)
{
    __builtin_prefetch(rule_cache_line(view.table, pc ^ view.salt));
}

// The rule of the return address `pc`, or 0 if it is not cached. `pc` is not 0.
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

// Compiles the rule of `pc` by the tables of its module, and caches it. Never 0. A guess of which
// nothing can be learned has no table, and that is not cached.
uint64_t rule_cache_fill(struct rule_view view, uint64_t pc);

ALWAYS_INLINE uint64_t rule_cache_get(struct rule_view view, uint64_t pc)
{
    uint64_t rule = rule_cache_find(view, pc);
    return LIKELY(rule != 0) ? rule : rule_cache_fill(view, pc);
}

// True if a cached rule says "no table" of code outside of all modules. A module that is loaded at
// its place later would not be looked up.
ALWAYS_INLINE bool rule_cache_has_unknown_code(void)
{
    return atomic_load_explicit(&g_rule_cache.unknown_code, memory_order_relaxed);
}

// Makes every cached rule void.
void rule_cache_flush(void);
