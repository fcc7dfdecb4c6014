// SPDX-License-Identifier: MIT
#include "target/unwind/environment/rule_cache.h"

#include <stddef.h>

#include "base/page_alloc.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/cfi/rule_compile.h"
#include "target/unwind/environment/module_copy.h"
#include "target/unwind/environment/module_table.h"
#include "target/unwind/environment/self_memory.h"
#include "target/unwind/environment/signal_frame.h"

#define FIRST_LOG2 14u // 16 KiB
#define LAST_LOG2  22u // 4 MiB

static _Alignas(64) char g_first_memory[1u << FIRST_LOG2];
static struct rule_table g_first_table = {.shift = 64 - FIRST_LOG2, .memory = g_first_memory};
static atomic_flag g_growing = ATOMIC_FLAG_INIT;

struct rule_cache g_rule_cache = {.table = &g_first_table};

static size_t table_bytes(const struct rule_table *table)
{
    return (size_t)1 << (64 - table->shift);
}

static struct rule_entry *table_entry(const struct rule_table *table, size_t index)
{
    return (struct rule_entry *)(void *)table->memory + index;
}

static void write_entry(struct rule_entry *entry, uint64_t key, uint64_t rule)
{
    atomic_store_explicit(&entry->check, key ^ rule, memory_order_relaxed);
    atomic_store_explicit(&entry->rule, rule, memory_order_relaxed);
}

static void insert(struct rule_table *table, uint64_t key, uint64_t rule)
{
    struct rule_entry *line = rule_cache_line(table, key);
    for (uint32_t i = 0; i < RULE_LINE_ENTRIES; i++) {
        if (atomic_load_explicit(&line[i].rule, memory_order_relaxed) == 0) {
            write_entry(&line[i], key, rule);
            atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed);
            return;
        }
    }
    write_entry(&line[(key >> 4) % RULE_LINE_ENTRIES], key, rule);
}

static struct rule_table *new_table(uint32_t shift)
{
    size_t len_bytes = (size_t)1 << (64 - shift);
    // The table's own description follows its entries, so that these keep their alignment.
    char *memory = page_alloc(len_bytes + sizeof(struct rule_table));
    if (memory == NULL) {
        return NULL;
    }
    struct rule_table *table = (struct rule_table *)(void *)(memory + len_bytes);
    table->shift = shift;
    table->memory = memory;
    return table;
}

// Replace `old` by a larger table with the same entries. Entries that other threads insert
// meanwhile are lost, and compiled again.
static void grow(struct rule_table *old)
{
    if (atomic_flag_test_and_set_explicit(&g_growing, memory_order_acquire)) {
        return;
    }
    bool is_current = atomic_load_explicit(&g_rule_cache.table, memory_order_relaxed) == old;
    struct rule_table *table = is_current ? new_table(old->shift - 2) : NULL;
    if (table != NULL) {
        size_t count = table_bytes(old) / sizeof(struct rule_entry);
        for (size_t i = 0; i < count; i++) {
            const struct rule_entry *entry = table_entry(old, i);
            uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);
            uint64_t rule = atomic_load_explicit(&entry->rule, memory_order_relaxed);
            if (rule != 0) {
                insert(table, check ^ rule, rule);
            }
        }
        // Release: see rule_cache_view.
        atomic_store_explicit(&g_rule_cache.table, table, memory_order_release);
    }
    atomic_flag_clear_explicit(&g_growing, memory_order_release);
}

// Return the rule by a copy of the module; 0 if it cannot be learned.
static uint64_t rule_by_copy(uint64_t ret_addr)
{
    struct module_span span;
    if (!module_table_find_unread(ret_addr - 1, &span)) {
        atomic_store_explicit(&g_rule_cache.unknown_code, true, memory_order_relaxed);
        return rule_stopping(RULE_NO_TABLE);
    }
    if (span.hdr_addr == 0) {
        return rule_stopping(RULE_NO_TABLE);
    }
    struct eh_table table;
    if (!module_copy_unwind(&span, &table)) {
        return 0;
    }
    const uint64_t rule = rule_from_table(&table, ret_addr);
    module_copy_close(&table);
    return rule;
}

static uint64_t rule_by_tables(uint64_t ret_addr, bool is_guess)
{
    struct module_span span;
    struct eh_table table;
    if (is_guess && !module_table_stays(ret_addr - 1)) {
        return rule_by_copy(ret_addr);
    }
    if (!module_table_find(ret_addr - 1, &span)) {
        atomic_store_explicit(&g_rule_cache.unknown_code, true, memory_order_relaxed);
        return rule_stopping(RULE_NO_TABLE);
    }
    if (!module_table_unwind(&span, &table)) {
        return rule_stopping(RULE_NO_TABLE);
    }
    return rule_from_table(&table, ret_addr);
}

static uint64_t compile(uint64_t ret_addr, bool is_guess)
{
    const uint64_t rule = rule_by_tables(ret_addr, is_guess);
    const struct stack_bounds nothing_known = {0};
    struct self_memory self = self_memory_over(&nothing_known);
    struct memory_reader *memory = &self.reader;
    memory->is_guess = is_guess;
    // Tables do not describe, or describe wrongly, some returns from a signal handler.
    if ((rule & (RULE_STOP | RULE_SIGNAL)) != 0 && signal_frame_begins(memory, ret_addr)) {
        return signal_frame_rule();
    }
    if (rule == rule_stopping(RULE_NO_TABLE) && signal_frame_is_in_stub(memory, ret_addr - 1)) {
        return rule_stopping(RULE_COMPLEX);
    }
    return rule;
}

NOINLINE uint64_t rule_cache_fill(struct rule_table *table,
                                  uint64_t salt,
                                  bool is_guess,
                                  uint64_t pc)
{
    uint64_t rule = compile(pc, is_guess);
    if (UNLIKELY(rule == 0)) {
        return rule_stopping(RULE_NO_TABLE);
    }
    insert(table, pc ^ salt, rule);
    size_t count = table_bytes(table) / sizeof(struct rule_entry);
    size_t used = atomic_load_explicit(&table->used, memory_order_relaxed);
    if (used >= count / 4 * 3 && table->shift > 64 - LAST_LOG2) {
        grow(table);
    }
    return rule;
}

void rule_cache_flush(void)
{
    atomic_store_explicit(&g_rule_cache.unknown_code, false, memory_order_relaxed);
    // Release: see rule_cache_generation.
    atomic_fetch_add_explicit(&g_rule_cache.generation, 1, memory_order_release);
    struct rule_table *table = atomic_load_explicit(&g_rule_cache.table, memory_order_acquire);
    size_t count = table_bytes(table) / sizeof(struct rule_entry);
    for (size_t i = 0; i < count; i++) {
        write_entry(table_entry(table, i), 0, 0);
    }
    atomic_store_explicit(&table->used, 0, memory_order_relaxed);
}
