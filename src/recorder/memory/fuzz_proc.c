// SPDX-License-Identifier: MIT
// fuzz_proc: any bytes as smaps and as the other texts of /proc/PID.
//
// The input's first byte decides which pages are resident and how many blocks are live in the
// mapped memory; the rest is the text. An accepted map must be in order, and its breakdown must add
// up to its lines, by kind and in all.
#include <stdlib.h>
#include <string.h>

#include "aggregate/books/listed_block.h"
#include "base/compiler.h"
#include "host/text/proc_text.h"
#include "recorder/memory/rss_split.h"

enum {
    BLOCKS_MAX = 64,
    PAGES_MAX = 1 << 16, // of one request; a real pagemap may serve more
    PAGE = 4096,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool read_pages(void *context, uint64_t first_page, size_t count, uint64_t *bits)
{
    const uint8_t pattern = *(const uint8_t *)context;
    for (size_t i = 0; i < count && count <= PAGES_MAX; i++) {
        bits[i / 64] |= (uint64_t)(((first_page + i) * pattern >> 3 & 1) != 0) << i % 64;
    }
    return count <= PAGES_MAX;
}

static void check_map(const struct memory_areas *map)
{
    uint64_t last_end = 0;
    for (size_t i = 0; i < map->areas.len; i++) {
        const struct memory_area *area = &map->areas.items[i];
        must(area->start >= last_end && area->end > area->start);
        must(area->start % PAGE == 0 && area->end % PAGE == 0);
        must(area->rss_bytes <= area->end - area->start);
        must(area->swap_bytes <= area->end - area->start);
        must(area->path + strlen(memory_area_path(map, area)) <= map->text.len);
        last_end = area->end;
    }
}

// Make blocks at the starts of areas, of sizes that cross their ends.
static void fill_heap(struct aggregator *aggregator,
                      struct aggregator_thread *thread,
                      const struct memory_areas *map,
                      struct listed_block_vec *out)
{
    uint32_t row = 0;
    must(aggregator_row(aggregator, thread, 0, &row) == ERR_OK);
    for (size_t i = 0; i < map->areas.len && i < BLOCKS_MAX; i++) {
        const struct listed_block block = {.address = map->areas.items[i].start + 16 * (i + 1),
                                           .size_bytes = (uint64_t)1 << i % 20,
                                           .row = row,
                                           .weight = 1};
        must(listed_block_vec_push(out, block) == ERR_OK);
    }
}

static void check_split(const struct memory_areas *map, uint8_t pattern)
{
    struct aggregator aggregator = {0};
    struct aggregator_process *process;
    struct aggregator_thread thread;
    const struct rec_process record = {.pid = 1};
    struct rec_memory_snapshot snapshot = {0};
    uint64_t rss_bytes = 0;
    CLEANUP(rss_tables_release) struct rss_tables tables = {0};
    CLEANUP(listed_block_vec_release) struct listed_block_vec listed = {0};
    must(aggregator_init(&aggregator) == ERR_OK);
    must(aggregator_process_begin(&aggregator, &record, &process) == ERR_OK);
    aggregator_thread_begin(&thread, process, 0, 1, 0);
    fill_heap(&aggregator, &thread, map, &listed);
    const struct address_range_vec own = {0};
    const struct u64_vec tops = {0};
    const struct rss_process what = {.aggregator = &aggregator,
                                     .process = process,
                                     .listed = &listed,
                                     .own = &own,
                                     .stack_tops = &tops,
                                     .stack_pointers = &tops,
                                     .pages = {.read = read_pages, .context = &pattern},
                                     .is_heap_known = pattern % 2 == 0};
    const enum err err = rss_split(&what, map, 0, &aggregator.strings, &snapshot, &tables);
    for (size_t i = 0; i < map->areas.len; i++) {
        rss_bytes += map->areas.items[i].rss_bytes;
    }
    must(err == ERR_NO_MEMORY || snapshot.rss_bytes == rss_bytes);
    must(err == ERR_NO_MEMORY ||
         snapshot.live_bytes + snapshot.rounding_bytes + snapshot.kept_bytes +
                 snapshot.mapped_bytes + snapshot.stack_bytes + snapshot.file_bytes +
                 snapshot.shared_bytes + snapshot.own_bytes + snapshot.rest_bytes ==
             rss_bytes);
    aggregator_release(&aggregator);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t pattern = size > 0 ? data[0] : 0;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    strbuf_append(&text, size > 0 ? data + 1 : data, size > 0 ? size - 1 : 0);
    if (strbuf_result(&text) != ERR_OK) {
        return 0;
    }
    (void)proc_text_kib(strbuf_text(&text), "VmRSS");
    (void)proc_text_faults(strbuf_text(&text));
    (void)proc_text_break(strbuf_text(&text));
    (void)proc_text_stack_pointer(strbuf_text(&text));
    if (memory_areas_parse(&text, &map) == ERR_OK) {
        check_map(&map);
        check_split(&map, pattern);
    }
    return 0;
}
