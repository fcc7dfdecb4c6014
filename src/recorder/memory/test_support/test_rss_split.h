// SPDX-License-Identifier: MIT
// test_rss_split: a process with a drawn memory map, blocks and pages, and its split.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregate/books/listed_block.h"
#include "base/compiler.h"
#include "host/memory/page_size.h"
#include "recorder/memory/rss_split.h"

#define PAGE ((uint64_t)4096)

enum {
    SNAPSHOT = 2 // an index
};

struct fixture {
    struct aggregator aggregator;
    struct aggregator_process *process;
    struct listed_block_vec listed; // its blocks
    struct address_range_vec own;
    struct u64_vec tops;
    struct u64_vec pointers;
    struct foreign_heap foreign;
    rec_string libc;
    struct memory_areas map;
    struct rec_memory_snapshot snapshot;
    struct rss_tables tables;
    struct aggregator_thread thread;
    uint32_t row;
    bool has_pages;
    bool is_partial;
    uint64_t absent_from; // pages in [from, to) are not resident
    uint64_t absent_to;
    uint64_t resident; // bit n: whether page n of each 64 is, besides
};

static inline bool read_pages(void *context, uint64_t first_page, size_t count, uint64_t *bits)
{
    const struct fixture *f = context;
    for (size_t i = 0; i < count; i++) {
        const uint64_t address = (first_page + i) * PAGE;
        const bool is_there = (address < f->absent_from || address >= f->absent_to) &&
                              (f->resident >> (first_page + i) % 64 & 1) != 0;
        bits[i / 64] |= (uint64_t)is_there << i % 64;
    }
    return f->has_pages;
}

static inline void open_fixture(struct fixture *f, const char *map)
{
    g_page_bits = 12; // the maps are drawn so, whatever this kernel has
    *f = (struct fixture){.has_pages = true, .resident = UINT64_MAX};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    strbuf_append_text(&text, map);
    assert_int_equal(memory_areas_parse(&text, &f->map), ERR_OK);
    assert_int_equal(aggregator_init(&f->aggregator), ERR_OK);
    const struct rec_process what = {.pid = 10};
    assert_int_equal(aggregator_process_begin(&f->aggregator, &what, &f->process), ERR_OK);
    aggregator_thread_begin(&f->thread, f->process, 0, 10, 0);
    assert_int_equal(aggregator_row(&f->aggregator, &f->thread, 0, &f->row), ERR_OK);
}

static inline void close_fixture(struct fixture *f)
{
    rss_tables_release(&f->tables);
    memory_areas_release(&f->map);
    listed_block_vec_release(&f->listed);
    address_range_vec_release(&f->own);
    u64_vec_release(&f->tops);
    u64_vec_release(&f->pointers);
    foreign_heap_release(&f->foreign);
    aggregator_release(&f->aggregator);
}

static inline void split(struct fixture *f)
{
    const struct rss_process what = {
        .aggregator = &f->aggregator,
        .process = f->process,
        .listed = &f->listed,
        .own = &f->own,
        .stack_tops = &f->tops,
        .stack_pointers = &f->pointers,
        .foreign = f->foreign.claims.len > 0 || f->foreign.knows_tops ? &f->foreign : NULL,
        .pages = {.read = read_pages, .context = f},
        .is_heap_known = !f->is_partial,
        .libc = f->libc,
    };
    assert_int_equal(
        rss_split(&what, &f->map, SNAPSHOT, &f->aggregator.strings, &f->snapshot, &f->tables),
        ERR_OK);
    for (size_t i = 0; i < f->tables.parts.len; i++) {
        assert_int_equal(f->tables.parts.items[i].snapshot, SNAPSHOT);
    }
    for (size_t i = 0; i < f->tables.survivors.len; i++) {
        assert_int_equal(f->tables.survivors.items[i].snapshot, SNAPSHOT);
    }
    const struct rec_memory_snapshot *snapshot = &f->snapshot;
    assert_int_equal(snapshot->live_bytes + snapshot->rounding_bytes + snapshot->kept_bytes +
                         snapshot->mapped_bytes + snapshot->stack_bytes + snapshot->file_bytes +
                         snapshot->shared_bytes + snapshot->own_bytes + snapshot->rest_bytes,
                     snapshot->rss_bytes);
}

static inline void allocate(struct fixture *f, uint64_t address, uint64_t size_bytes)
{
    const struct listed_block block = {
        .address = address, .size_bytes = size_bytes, .row = f->row, .weight = 1};
    assert_int_equal(listed_block_vec_push(&f->listed, block), ERR_OK);
    f->process->live_bytes += size_bytes;
}

static inline void map_range(struct fixture *f, uint64_t address, uint64_t pages, uint32_t kind)
{
    const struct wire_mapping change = {
        .address = address, .size_bytes = pages * PAGE, .number = 1, .kind = kind};
    assert_int_equal(aggregator_mapping(&f->aggregator, f->process, &change, 0), ERR_OK);
}

static inline unsigned draw_below(unsigned *random, unsigned limit)
{
    *random = *random * 1103515245u + 12345u;
    return (*random >> 8) % limit;
}
