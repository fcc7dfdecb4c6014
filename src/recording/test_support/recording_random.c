// SPDX-License-Identifier: MIT
// recording_random: see recording_random.h.
#include "recording/test_support/recording_random.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/minmax.h"
#include "recording/format/schema.h"
#include "recording/test_support/recording_text.h"
#include "recording/write/recording_builder.h"

enum {
    SLICES = 1024,
    SLICE_MS = 2,
    FRAMES_PER_NODES = 6, // nodes for each distinct frame
    MODULES = 24,
    LEAF_PERCENT = 40, // share of nodes that allocate
    MAX_DEPTH = 120,
    THREADS = 8,
    SIZE_KINDS = 32, // most programs request few different sizes
};

static const char *const words[] = {"parse", "tree",  "alloc", "vector", "node",  "build",
                                    "token", "cache", "value", "expand", "store", "visit"};
enum {
    WORDS = sizeof(words) / sizeof(words[0])
};

uint64_t random_next(struct random_source *source)
{
    uint64_t x = source->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    source->state = x;
    return x * 0x2545f4914f6cdd1dULL;
}

uint64_t random_below(struct random_source *source, uint64_t bound)
{
    return bound > 0 ? random_next(source) % bound : 0;
}

// Return a number with a random count of bits below `bits`, so that small numbers are likely.
static uint64_t random_skewed(struct random_source *source, unsigned bits)
{
    const uint64_t bit = random_below(source, bits); // compilers differ in what they draw first
    return random_next(source) >> (64 - 1 - bit);
}

static const char *random_word(struct random_source *random)
{
    return words[random_below(random, WORDS)];
}

// Write a name such as "parse_tree_node_17(value_store *, unsigned long)".
static void write_name(struct random_source *random, size_t nodes, size_t bytes, char *out)
{
    const char *parts[5];
    for (size_t i = 0; i < 5; i++) {
        parts[i] = random_word(random);
    }
    (void)snprintf(out, bytes, "%s_%s_%s_%llu(%s_%s *, unsigned long)", parts[0], parts[1],
                   parts[2], (unsigned long long)random_below(random, nodes), parts[3], parts[4]);
}

static enum err add_names(struct recording_builder *b, struct random_source *random, size_t nodes)
{
    char text[160];
    for (uint32_t i = 0; i < MODULES; i++) {
        uint32_t module = 0;
        (void)snprintf(text, sizeof(text), "/usr/lib/x86_64-linux-gnu/lib%s%u.so.%u",
                       words[i % WORDS], i, i % 7);
        TRY(recording_builder_module(b, text, &module));
    }
    for (size_t i = 0; i < nodes / FRAMES_PER_NODES + 2; i++) {
        char file[64];
        struct builder_symbol symbols[3];
        char names[3][160];
        uint32_t count = random_below(random, 3) == 0 ? 2 : 1;
        count += random_below(random, 9) == 0;
        for (uint32_t j = 0; j < count; j++) {
            write_name(random, nodes, sizeof(names[j]), names[j]);
            symbols[j] = (struct builder_symbol){
                .function = names[j], .file = file, .line = (uint32_t)random_below(random, 9000)};
        }
        (void)snprintf(file, sizeof(file), "../../src/%s/%s-%s.c", words[i % WORDS],
                       words[i / 7 % WORDS], words[i / 31 % WORDS]);
        uint32_t frame = 0;
        const uint32_t module = (uint32_t)(random_skewed(random, 16) % MODULES);
        TRY(recording_builder_frame(b, module, random_below(random, 20 << 20), symbols, count,
                                    &frame));
    }
    return ERR_OK;
}

// Add a tree shaped like a call graph: a new node mostly continues the one before it.
static enum err add_nodes(struct recording_builder *b, struct random_source *random, size_t nodes)
{
    uint32_t depths[MAX_DEPTH] = {0};
    uint32_t depth = 0;
    while (b->nodes.len < nodes) {
        uint64_t back = random_below(random, 4) == 0 ? random_skewed(random, 5) : 0;
        depth = depth > back ? depth - (uint32_t)back : 0;
        depth = depth + 1 < MAX_DEPTH ? depth : MAX_DEPTH / 2;
        // A function has few callees, so the frame depends on its parent and a small choice.
        uint64_t choice = hash_mix(depths[depth] | random_skewed(random, 10) << 32);
        uint32_t node = 0;
        TRY(recording_builder_node(b, depths[depth], (uint32_t)(choice % b->frames.len), &node));
        depths[++depth] = node;
    }
    return ERR_OK;
}

// Make the cell of a row in one slice: it allocates `count` blocks and frees most live ones.
static struct rec_cell
random_cell(struct random_source *random, uint64_t count, uint64_t live, uint64_t size)
{
    uint64_t frees = random_below(random, 8) == 0 ? random_below(random, live + 1) : live;
    uint64_t temporary = random_below(random, 3) == 0 ? random_below(random, count + 1) : 0;
    temporary = min_u64(temporary, frees);
    return (struct rec_cell){.allocations = count,
                             .allocated_bytes = count * size,
                             .frees = frees,
                             .freed_bytes = frees * size,
                             .temporary = temporary};
}

static enum err add_cohort(struct recording_builder *b, const struct rec_cell *cell, uint64_t size)
{
    bool is_last = cell->slice + 1 >= SLICES;
    return cohorts_vec_push(&b->cohorts,
                            (struct rec_cohort){.row = cell->row,
                                                .born_slice = cell->slice,
                                                .freed_slice = is_last ? REC_NONE : cell->slice + 1,
                                                .blocks = 1,
                                                .bytes = size});
}

// Spread the row's allocations over slices, and add the frees to the row.
static enum err add_cells(struct recording_builder *b,
                          struct random_source *random,
                          uint32_t row_index,
                          uint64_t size)
{
    struct rec_row *row = &b->rows.items[row_index];
    uint64_t left = row->allocations;
    uint64_t live = 0;
    uint32_t slice = (uint32_t)random_below(random, SLICES);
    while (left > 0) {
        bool is_last = slice + 40 >= SLICES;
        uint64_t count = is_last ? left : 1 + random_skewed(random, 9) % left;
        struct rec_cell cell = random_cell(random, count, live + count, size);
        cell.row = row_index;
        cell.slice = slice;
        TRY(cells_vec_push(&b->cells, cell));
        row->frees += cell.frees;
        row->temporary += cell.temporary;
        live += count - cell.frees;
        left -= count;
        slice += 1 + (uint32_t)random_skewed(random, 5);
        if (random_below(random, 8) > 0) {
            continue;
        }
        TRY(add_cohort(b, &cell, size));
    }
    return ERR_OK;
}

static enum err add_row(struct recording_builder *b, struct random_source *random, uint32_t node)
{
    uint32_t row_index = 0;
    uint64_t kind = 1 + random_below(random, SIZE_KINDS);
    uint64_t size = kind * 8 + (kind > 24) * random_skewed(random, 14);
    uint32_t thread = random_below(random, 4) == 0 ? (uint32_t)random_below(random, THREADS) : 0;
    TRY(recording_builder_row(b, thread, node, &row_index));
    b->rows.items[row_index].allocations = 1 + random_skewed(random, 10);
    TRY(add_cells(b, random, row_index, size));
    struct rec_row *row = &b->rows.items[row_index];
    row->allocated_bytes = row->allocations * size;
    row->freed_bytes = row->frees * size;
    row->temporary_bytes = row->temporary * size;
    row->peak_blocks = random_below(random, 3) == 0 ? row->allocations - row->frees : 0;
    row->peak_bytes = row->peak_blocks * size;
    row->own_peak_bytes = (1 + random_below(random, row->allocations)) * size;
    TRY(size_buckets_vec_push(&b->size_buckets,
                              (struct rec_bucket){.row = row_index,
                                                  .bucket = rec_bucket_of(size),
                                                  .count = row->allocations,
                                                  .bytes = row->allocated_bytes}));
    if (row->allocations > row->frees) { // a live block
        TRY(blocks_vec_push(&b->blocks,
                            (struct rec_block){.address = (uint64_t)row_index << 20 | 64,
                                               .size_bytes = size,
                                               .born_ms = row_index % 100,
                                               .row = row_index,
                                               .flags = row->peak_blocks > 0
                                                            ? REC_BLOCK_END | REC_BLOCK_PEAK
                                                            : REC_BLOCK_END}));
    }
    if (row->frees == 0) {
        return ERR_OK;
    }
    return lifetime_buckets_vec_push(
        &b->lifetime_buckets, (struct rec_bucket){.row = row_index,
                                                  .bucket = (uint32_t)random_below(random, 20),
                                                  .count = row->frees,
                                                  .bytes = row->freed_bytes});
}

static enum err add_rows(struct recording_builder *b, struct random_source *random)
{
    for (uint32_t node = 1; node < b->nodes.len; node++) {
        bool allocates = random_below(random, 100) < LEAF_PERCENT;
        TRY(allocates ? add_row(b, random, node) : ERR_OK);
    }
    return ERR_OK;
}

static enum err add_surroundings(struct recording_builder *b)
{
    struct rec_counter counter = {.kind = REC_COUNTER_LOSS};
    uint32_t process = 0;
    TRY(recording_builder_process(b, 4711, "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", &process));
    b->processes.items[0].flags = REC_PROCESS_MAIN;
    b->processes.items[0].exit_status = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t thread = 0;
        TRY(recording_builder_thread(b, process, 4711 + i, i == 0 ? "cc1plus" : "worker", &thread));
    }
    for (uint32_t i = 0; i < 50; i++) {
        TRY(rss_samples_vec_push(&b->rss_samples,
                                 (struct rec_rss_sample){.time_ms = i * 100ULL,
                                                         .process = process,
                                                         .rss_bytes = (i + 7ULL) << 20,
                                                         .anonymous_bytes = (uint64_t)i << 20,
                                                         .file_bytes = 7 << 20,
                                                         .minor_faults = i * 256ULL}));
    }
    for (uint32_t i = 0; i < 3; i++) { // stop, start, and a user's mark
        struct rec_mark mark = {.time_ms = i * 300ULL, .kind = REC_MARK_STOP - i};
        TRY(recording_builder_string(b, i < 2 ? "" : "the second half", &mark.text));
        TRY(marks_vec_push(&b->marks, mark));
    }
    for (uint32_t i = 0; i < 2; i++) { // one with a name, and one for the rest
        struct rec_unrecorded other = {.execs = i + 1, .descendants = i * 40ULL};
        TRY(recording_builder_string(b, i == 0 ? "/usr/bin/busybox" : "", &other.program));
        TRY(recording_builder_string(b, "static", &other.reason));
        TRY(recording_builder_string(b, "static executable", &other.text));
        TRY(unrecorded_vec_push(&b->unrecorded, other));
    }
    for (uint32_t i = 0; i < 3; i++) { // hooked, not hooked, and the rest
        struct rec_hook hook = {.processes = i + 1};
        TRY(recording_builder_string(b, i < 2 ? "/usr/lib/libjemalloc.so.2" : "", &hook.module));
        TRY(recording_builder_string(b,
                                     i == 0   ? "mallocx"
                                     : i == 1 ? "sdallocx"
                                              : "",
                                     &hook.function));
        TRY(recording_builder_string(b, i < 2 ? "jemalloc" : "", &hook.allocator));
        TRY(recording_builder_string(b, i == 1 ? "is too short" : "", &hook.reason));
        TRY(hooks_vec_push(&b->hooks, hook));
    }
    TRY(recording_builder_string(b, "events_lost", &counter.name));
    TRY(recording_builder_string(b, "events that did not reach the profile", &counter.text));
    TRY(counters_vec_push(&b->counters, counter));
    b->meta = (struct rec_meta){.state = REC_STATE_FINISHED,
                                .page_bytes = 4096,
                                .cpu_count = 2,
                                .pid = 4711,
                                .max_frames = 256,
                                .start_unix_ns = 1700000000000000000ULL,
                                .runtime_ms = (uint64_t)SLICES * SLICE_MS,
                                .memory_bytes = 8ULL << 30};
    TRY(recording_builder_string(b, "cc1plus -quiet a \"b c\".cc", &b->meta.command_line));
    TRY(recording_builder_string(b, "Linux 6.1.0 x86_64", &b->meta.kernel));
    return recording_builder_string(b, "cairn", &b->meta.source_format);
}

enum err recording_random_realistic(uint64_t seed, size_t nodes, struct recording *out)
{
    struct random_source random = {.state = seed * 2 + 1};
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    TRY(recording_builder_init(&b));
    TRY(add_surroundings(&b));
    TRY(add_names(&b, &random, nodes));
    TRY(add_nodes(&b, &random, nodes));
    TRY(add_rows(&b, &random));
    recording_builder_sum(&b);
    TRY(recording_builder_slices(&b, SLICES, SLICE_MS));
    for (size_t i = 0; i < b.slices.len; i++) {
        if (b.slices.items[i].live_max_bytes > b.totals.peak_bytes) {
            b.totals.peak_time_ms = i * b.slice_ms;
        }
    }
    b.totals.events = b.totals.allocations + b.totals.frees;
    return recording_builder_finish(&b, out);
}

static void
fill_wild(const struct rec_table *table, char *entry, size_t strings, struct random_source *random)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const struct rec_column *column = &table->columns[i];
        uint64_t value = random_skewed(random, 64);
        if (column->width_bytes == sizeof(uint32_t)) {
            value = (uint32_t)value;
        }
        if (column->kind == REC_COLUMN_STRING) {
            value %= strings;
        }
        if (random_below(random, 8) == 0) {
            value = 0;
        }
        (void)rec_column_scatter(column, entry, 0, &value, 1); // fits: checked above
    }
}

static enum err
add_wild_strings(struct recording_builder *b, size_t count, struct random_source *random)
{
    for (size_t i = 0; i < count; i++) {
        char text[64];
        size_t len = random_below(random, sizeof(text));
        for (size_t j = 0; j < len; j++) {
            text[j] = (char)(1 + random_below(random, 255)); // any byte but zero
        }
        uint32_t id = 0;
        TRY(string_table_intern(&b->strings, text, len, &id));
    }
    return ERR_OK;
}

enum err recording_random_wild(uint64_t seed, size_t entries, struct recording *out)
{
    struct random_source random = {.state = seed * 2 + 1};
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    TRY(add_wild_strings(&b, random_below(&random, entries + 1), &random));
    size_t strings = string_table_count(&b.strings);
#define X(type, name, count) TRY(name##_vec_resize(&b.name, random_below(&random, entries + 1)));
    REC_TABLES(X)
#undef X
    struct recording made = {0};
    TRY(recording_builder_finish(&b, &made));
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const struct rec_table *table = &rec_tables[i];
        if (table->columns == NULL) {
            continue;
        }
        char *items = table->is_single ? (char *)&made : rec_table_array(table, &made);
        for (size_t j = 0; j < rec_table_count(table, &made); j++) {
            fill_wild(table, items + j * table->entry_bytes, strings, &random);
        }
    }
    *out = made;
    return ERR_OK;
}

static bool columns_equal(const struct rec_table *table, const char *a, const char *b)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (rec_column_get(&table->columns[i], a) != rec_column_get(&table->columns[i], b)) {
            return false;
        }
    }
    return true;
}

const char *
recording_difference(const struct recording *a, const struct recording *b, size_t *entry)
{
    for (uint32_t id = 0; id < a->strings.count || id < b->strings.count; id++) {
        *entry = id;
        if (id >= a->strings.count || id >= b->strings.count ||
            strcmp(rec_string_get(a, id), rec_string_get(b, id)) != 0) {
            return "strings";
        }
    }
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const struct rec_table *table = &rec_tables[i];
        if (table->columns == NULL) {
            continue;
        }
        const char *left = rec_table_items(table, a);
        const char *right = rec_table_items(table, b);
        size_t count = rec_table_count(table, a);
        *entry = SIZE_MAX;
        if (count != rec_table_count(table, b)) {
            return table->name;
        }
        for (size_t j = 0; j < count; j++) {
            *entry = j;
            size_t at = j * table->entry_bytes;
            if (!columns_equal(table, left + at, right + at)) {
                return table->name;
            }
        }
    }
    return NULL;
}
