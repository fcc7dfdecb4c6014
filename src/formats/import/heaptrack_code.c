// SPDX-License-Identifier: MIT
// heaptrack_code: the lines of a heaptrack file about the places and names of code, and the sums of
// its events, as tables of a recording.
//
// Interpreted files name each instruction pointer once. Its frame keeps the address in memory,
// because these files lack the addresses of modules. Raw files list the modules instead, and the
// addresses of a trace become addresses in these modules; src/profile looks up their names when the
// recording is opened. The addresses are already call addresses (return address - 1), hence exact.
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/search.h"
#include "formats/import/heaptrack_file.h"

bool heaptrack_string(const struct heaptrack *h,
                      struct bytes *line,
                      bool is_word,
                      struct bytes *out)
{
    uint64_t len;
    if (h->version >= 3) {
        if (line->len == 0 || !heaptrack_number(line, &len) || line->len == 0 ||
            len > line->len - 1) {
            return false;
        }
    }
    line->data += line->len > 0; // the space
    line->len -= line->len > 0;
    if (h->version < 3) {
        const uint8_t *stop = is_word ? memchr(line->data, ' ', line->len) : NULL;
        len = stop != NULL ? (uint64_t)(stop - line->data) : line->len;
    }
    *out = (struct bytes){.data = line->data, .len = (size_t)len};
    line->data += len;
    line->len -= (size_t)len;
    return true;
}

void heaptrack_read_string(struct heaptrack *h, struct bytes line)
{
    struct bytes text = {0};
    heaptrack_require(h, heaptrack_string(h, &line, false, &text) && line.len == 0,
                      "the string is not as long as the line says");
    import_need(h->import, u32_vec_push(&h->strings, import_string(h->import, text)));
}

// Find a string by its number in the file; 0 is none.
static bool find_string(const struct heaptrack *h, uint64_t number, rec_string *out)
{
    bool is_known = number <= h->strings.len;
    *out = is_known && number > 0 ? h->strings.items[number - 1] : 0;
    return is_known;
}

// Read the next function, file and line.
static struct rec_symbol read_symbol(struct heaptrack *h, struct bytes *line)
{
    struct rec_symbol symbol = {0};
    uint64_t function = 0;
    uint64_t file = 0;
    uint64_t number = 0;
    heaptrack_require(
        h,
        heaptrack_number(line, &function) &&
            (line->len == 0 || (heaptrack_number(line, &file) && heaptrack_number(line, &number))),
        "a function of the instruction lacks its file or line");
    heaptrack_require(h,
                      find_string(h, function, &symbol.function) &&
                          find_string(h, file, &symbol.file) && number <= UINT32_MAX,
                      "the instruction refers to a string that is not there");
    symbol.line = (uint32_t)number;
    return symbol;
}

void heaptrack_read_instruction(struct heaptrack *h, struct bytes line)
{
    struct recording_builder *b = h->import->b;
    struct rec_frame frame = {.module = REC_NONE,
                              .flags = REC_FRAME_EXACT_PC | REC_FRAME_LOADED,
                              .symbol_first = (uint32_t)b->symbols.len};
    uint64_t number = 0;
    rec_string module = 0;
    heaptrack_require(h,
                      heaptrack_number(&line, &frame.offset) && heaptrack_number(&line, &number) &&
                          find_string(h, number, &module),
                      "the instruction lacks its address or module");
    frame.module = module != 0 ? import_module_of(h->import, module) : REC_NONE;
    while (line.len > 0) {
        const struct rec_symbol symbol = read_symbol(h, &line);
        if (symbol.function != 0 || symbol.file != 0) {
            import_need(h->import, symbols_vec_push(&b->symbols, symbol));
            frame.symbol_count++;
        }
    }
    const bool is_full = b->frames.len >= REC_NONE || b->symbols.len >= REC_NONE;
    import_need(h->import, is_full ? ERR_LIMIT : frames_vec_push(&b->frames, frame));
}

static int compare_ranges(const void *left, const void *right)
{
    const struct raw_range *a = left;
    const struct raw_range *b = right;
    return order_u64(a->start, b->start);
}

// Return the last range that begins at or before the address, if it holds the address.
static const struct raw_range *find_range(struct heaptrack *h, uint64_t address)
{
    struct raw_range_vec *ranges = &h->ranges;
    if (!h->is_sorted) {
        raw_range_vec_sort(ranges, compare_ranges);
    }
    h->is_sorted = true;
    const size_t next = FIRST_WHERE(at, ranges->len, ranges->items[at].start > address);
    return next > 0 && address < ranges->items[next - 1].end ? &ranges->items[next - 1] : NULL;
}

static uint32_t find_raw_frame(struct heaptrack *h, uint64_t address)
{
    uint32_t frame;
    if (!map_u64_get(&h->frame_of, address, &frame)) {
        const struct raw_range *range = find_range(h, address);
        frame = import_frame(h->import, range != NULL ? range->module : REC_NONE,
                             range != NULL ? address - range->base : address);
        h->import->b->frames.items[frame].flags = REC_FRAME_EXACT_PC;
        import_need(h->import, map_u64_put(&h->frame_of, address, frame));
    }
    return frame;
}

// Traces are numbered like nodes: in the order of their lines, from 1.
void heaptrack_read_trace(struct heaptrack *h, struct bytes line)
{
    struct recording_builder *b = h->import->b;
    uint64_t code = 0;
    uint64_t parent = 0;
    heaptrack_require(
        h, heaptrack_number(&line, &code) && heaptrack_number(&line, &parent) && line.len == 0,
        "the trace lacks its instruction or parent");
    heaptrack_require(h, parent < b->nodes.len, "the trace comes before its parent");
    heaptrack_require(h, h->is_raw || (code > 0 && code <= b->frames.len),
                      "the trace refers to an instruction that is not there");
    const struct rec_node node = {.parent = (uint32_t)parent,
                                  .frame =
                                      h->is_raw ? find_raw_frame(h, code) : (uint32_t)(code - 1)};
    import_need(h->import, b->nodes.len < REC_NONE ? nodes_vec_push(&b->nodes, node) : ERR_LIMIT);
}

void heaptrack_read_executable(struct heaptrack *h, struct bytes line)
{
    struct bytes path = {0};
    heaptrack_require(h, heaptrack_string(h, &line, false, &path) && line.len == 0,
                      "the path is not as long as the line says");
    h->executable = import_string(h->import, path);
    h->import->b->meta.program = h->executable;
}

// Remove the modules, because a new list replaces the old one.
static void forget_modules(struct heaptrack *h)
{
    raw_range_vec_clear(&h->ranges);
    map_u64_clear(&h->frame_of);
    h->is_sorted = true;
}

static bool text_equals(struct bytes text, const char *other)
{
    return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

void heaptrack_read_module(struct heaptrack *h, struct bytes line)
{
    struct bytes path = {0};
    struct raw_range range = {0};
    heaptrack_require(h, heaptrack_string(h, &line, true, &path),
                      "the module's path is not as long as the line says");
    if (text_equals(path, "-")) {
        forget_modules(h);
        return;
    }
    const rec_string name = import_string(h->import, path);
    bool is_executable = text_equals(path, "x") && h->executable != 0;
    range.module = import_module_of(h->import, is_executable ? h->executable : name);
    h->import->b->modules.items[range.module].is_executable |= is_executable;
    heaptrack_require(h, heaptrack_number(&line, &range.base), "the module lacks its address");
    while (line.len > 0) {
        uint64_t bytes = 0;
        heaptrack_require(h,
                          heaptrack_number(&line, &range.start) && heaptrack_number(&line, &bytes),
                          "a segment of the module lacks its length");
        range.start += range.base;
        range.end = range.start + bytes;
        import_need(h->import, raw_range_vec_push(&h->ranges, range));
        h->is_sorted = false;
    }
}

static void fill_rows(const struct heaptrack *h)
{
    const struct rec_row_vec *rows = &h->totals.rows.rows;
    struct recording_builder *b = h->import->b;
    import_need(h->import, rows_vec_resize(&b->rows, rows->len));
    for (size_t i = 0; i < rows->len; i++) {
        b->rows.items[i] = rows->items[i];
    }
}

// Make the table in `items`, which has room for its entries.
static void make_table(struct heaptrack *h, enum rec_table_index table, void *items)
{
    const struct table_supply supply = row_history_supply(&h->history);
    supply.begin(supply.context, table);
    import_need(h->import,
                supply.next(supply.context, table, items, supply.count(supply.context, table)));
}

static void fill_history(struct heaptrack *h)
{
    struct row_history *history = &h->history;
    struct recording_builder *b = h->import->b;
    import_need(h->import, row_history_begin(history, &h->totals.rows));
    const size_t *counts = history->counts;
    import_need(h->import, cells_vec_resize(&b->cells, counts[REC_TABLE_CELLS]));
    import_need(h->import,
                size_buckets_vec_resize(&b->size_buckets, counts[REC_TABLE_SIZE_BUCKETS]));
    import_need(h->import, lifetime_buckets_vec_resize(&b->lifetime_buckets,
                                                       counts[REC_TABLE_LIFETIME_BUCKETS]));
    make_table(h, REC_TABLE_CELLS, b->cells.items);
    make_table(h, REC_TABLE_SIZE_BUCKETS, b->size_buckets.items);
    make_table(h, REC_TABLE_LIFETIME_BUCKETS, b->lifetime_buckets.items);
    const struct rec_cohort_vec cohorts = TAKE(history->cohorts);
    b->cohorts =
        (struct cohorts_vec){.items = cohorts.items, .len = cohorts.len, .cap = cohorts.cap};
}

static void fill_slices(struct heaptrack *h)
{
    struct recording_builder *b = h->import->b;
    const struct series *series = &h->totals.series;
    b->slice_ms = series->slice_ms;
    import_need(h->import, slices_vec_resize(&b->slices, series->current + 1));
    b->slices.len = series_collect(series, &h->totals.sums, b->slices.items);
    for (uint32_t i = 0; i < b->slices.len; i++) {
        const struct rec_rss_sample sample = {.time_ms = (uint64_t)i << series->slice_shift,
                                              .rss_bytes = h->rss_bytes[i]};
        if (sample.rss_bytes > 0) {
            import_need(h->import, rss_samples_vec_push(&b->rss_samples, sample));
            uint64_t *highest = &b->processes.items[0].peak_rss_bytes;
            *highest = max_u64(*highest, sample.rss_bytes);
        }
    }
}

void heaptrack_fill_tables(struct heaptrack *h)
{
    const struct heap_totals *totals = &h->totals;
    struct recording_builder *b = h->import->b;
    import_need(h->import, heap_totals_finish(&h->totals));
    fill_rows(h);
    fill_history(h);
    fill_slices(h);
    b->totals.peak_time_ms = totals->peak_time_ms;
    b->processes.items[0].peak_bytes = totals->peak_bytes;
    b->processes.items[0].end_ms = totals->now_ms;
    b->threads.items[0].end_ms = totals->now_ms;
    b->meta.runtime_ms = totals->now_ms;
    recording_builder_sum(b);
}
