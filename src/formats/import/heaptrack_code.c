// SPDX-License-Identifier: MIT
// heaptrack_code: the lines of a heaptrack file about the places and names of code, and the sums of
// its events, as tables of a recording.
//
// Interpreted files name each instruction pointer once. Its frame keeps the address in memory,
// because these files lack the addresses of modules. Raw files list the modules instead, and the
// addresses of a trace become addresses in these modules; src/profile looks up their names when the
// recording is opened. The addresses are already call addresses (return address - 1), hence exact.
#include <string.h>

#include "aggregate/totals/row_history.h"
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

enum err heaptrack_read_string(struct heaptrack *h, struct bytes line)
{
    struct bytes text;
    rec_string id;
    if (!heaptrack_string(h, &line, false, &text) || line.len > 0) {
        return heaptrack_refuse(h, "the string is not as long as the line says");
    }
    TRY(import_string(h->import, text, &id));
    return u32_vec_push(&h->strings, id);
}

// Find a string by its number in the file; 0 is none.
static bool find_string(const struct heaptrack *h, uint64_t number, rec_string *out)
{
    bool is_known = number <= h->strings.len;
    *out = is_known && number > 0 ? h->strings.items[number - 1] : 0;
    return is_known;
}

// Read the next function, file and line, if there is one.
static MUST_USE enum err
read_symbol(struct heaptrack *h, struct bytes *line, struct rec_symbol *out, bool *out_is_there)
{
    uint64_t function;
    uint64_t file = 0;
    uint64_t number = 0;
    *out_is_there = line->len > 0;
    if (line->len == 0) {
        return ERR_OK;
    }
    if (!heaptrack_number(line, &function) ||
        (line->len > 0 && (!heaptrack_number(line, &file) || !heaptrack_number(line, &number)))) {
        return heaptrack_refuse(h, "a function of the instruction lacks its file or line");
    }
    if (!find_string(h, function, &out->function) || !find_string(h, file, &out->file) ||
        number > UINT32_MAX) {
        return heaptrack_refuse(h, "the instruction refers to a string that is not there");
    }
    out->line = (uint32_t)number;
    return ERR_OK;
}

enum err heaptrack_read_instruction(struct heaptrack *h, struct bytes line)
{
    struct recording_builder *b = h->import->b;
    struct rec_frame frame = {.module = REC_NONE,
                              .flags = REC_FRAME_EXACT_PC | REC_FRAME_LOADED,
                              .symbol_first = (uint32_t)b->symbols.len};
    uint64_t number;
    rec_string module = 0;
    if (!heaptrack_number(&line, &frame.offset) || !heaptrack_number(&line, &number) ||
        !find_string(h, number, &module)) {
        return heaptrack_refuse(h, "the instruction lacks its address or module");
    }
    if (module != 0) {
        TRY(recording_builder_module_of(b, module, &frame.module));
    }
    for (;;) {
        struct rec_symbol symbol = {0};
        bool is_there;
        TRY(read_symbol(h, &line, &symbol, &is_there));
        if (!is_there) {
            break;
        }
        if (symbol.function != 0 || symbol.file != 0) {
            TRY(symbols_vec_push(&b->symbols, symbol));
            frame.symbol_count++;
        }
    }
    if (b->frames.len >= REC_NONE || b->symbols.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    return frames_vec_push(&b->frames, frame);
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

static MUST_USE enum err find_raw_frame(struct heaptrack *h, uint64_t address, uint32_t *out)
{
    struct recording_builder *b = h->import->b;
    if (map_u64_get(&h->frame_of, address, out)) {
        return ERR_OK;
    }
    const struct raw_range *range = find_range(h, address);
    uint32_t frame;
    TRY(recording_builder_frame(b, range != NULL ? range->module : REC_NONE,
                                range != NULL ? address - range->base : address, NULL, 0, &frame));
    b->frames.items[frame].flags = REC_FRAME_EXACT_PC;
    TRY(map_u64_put(&h->frame_of, address, frame));
    *out = frame;
    return ERR_OK;
}

// Traces are numbered like nodes: in the order of their lines, from 1.
enum err heaptrack_read_trace(struct heaptrack *h, struct bytes line)
{
    struct recording_builder *b = h->import->b;
    uint64_t code;
    uint64_t parent;
    uint32_t frame;
    if (!heaptrack_number(&line, &code) || !heaptrack_number(&line, &parent) || line.len > 0) {
        return heaptrack_refuse(h, "the trace lacks its instruction or parent");
    }
    if (parent >= b->nodes.len) {
        return heaptrack_refuse(h, "the trace comes before its parent");
    }
    if (h->is_raw) {
        TRY(find_raw_frame(h, code, &frame));
    } else if (code == 0 || code > b->frames.len) {
        return heaptrack_refuse(h, "the trace refers to an instruction that is not there");
    } else {
        frame = (uint32_t)(code - 1);
    }
    if (b->nodes.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    return nodes_vec_push(&b->nodes, (struct rec_node){.parent = (uint32_t)parent, .frame = frame});
}

enum err heaptrack_read_executable(struct heaptrack *h, struct bytes line)
{
    struct bytes path;
    if (!heaptrack_string(h, &line, false, &path) || line.len > 0) {
        return heaptrack_refuse(h, "the path is not as long as the line says");
    }
    TRY(import_string(h->import, path, &h->executable));
    h->import->b->meta.program = h->executable;
    return ERR_OK;
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

enum err heaptrack_read_module(struct heaptrack *h, struct bytes line)
{
    struct bytes path;
    struct raw_range range;
    if (!heaptrack_string(h, &line, true, &path)) {
        return heaptrack_refuse(h, "the module's path is not as long as the line says");
    }
    if (text_equals(path, "-")) {
        forget_modules(h);
        return ERR_OK;
    }
    rec_string name;
    TRY(import_string(h->import, path, &name));
    bool is_executable = text_equals(path, "x") && h->executable != 0;
    TRY(recording_builder_module_of(h->import->b, is_executable ? h->executable : name,
                                    &range.module));
    h->import->b->modules.items[range.module].is_executable |= is_executable;
    if (!heaptrack_number(&line, &range.base)) {
        return heaptrack_refuse(h, "the module lacks its address");
    }
    while (line.len > 0) {
        uint64_t bytes;
        if (!heaptrack_number(&line, &range.start) || !heaptrack_number(&line, &bytes)) {
            return heaptrack_refuse(h, "a segment of the module lacks its length");
        }
        range.start += range.base;
        range.end = range.start + bytes;
        TRY(raw_range_vec_push(&h->ranges, range));
        h->is_sorted = false;
    }
    return ERR_OK;
}

static MUST_USE enum err fill_rows(const struct heaptrack *h)
{
    const struct rec_row_vec *rows = &h->totals.rows.rows;
    struct recording_builder *b = h->import->b;
    TRY(rows_vec_resize(&b->rows, rows->len));
    for (size_t i = 0; i < rows->len; i++) {
        b->rows.items[i] = rows->items[i];
    }
    return ERR_OK;
}

// Make the table in `items`, which has room for the supply's count of entries.
static MUST_USE enum err
make_table(const struct table_supply *supply, enum rec_table_index table, void *items)
{
    supply->begin(supply->context, table);
    return supply->next(supply->context, table, items, supply->count(supply->context, table));
}

static MUST_USE enum err fill_history(struct heaptrack *h)
{
    CLEANUP(row_history_release) struct row_history history = {0};
    struct recording_builder *b = h->import->b;
    TRY(row_history_begin(&history, &h->totals.rows));
    const struct table_supply supply = row_history_supply(&history);
    TRY(cells_vec_resize(&b->cells, history.counts[REC_TABLE_CELLS]));
    TRY(size_buckets_vec_resize(&b->size_buckets, history.counts[REC_TABLE_SIZE_BUCKETS]));
    TRY(lifetime_buckets_vec_resize(&b->lifetime_buckets,
                                    history.counts[REC_TABLE_LIFETIME_BUCKETS]));
    TRY(make_table(&supply, REC_TABLE_CELLS, b->cells.items));
    TRY(make_table(&supply, REC_TABLE_SIZE_BUCKETS, b->size_buckets.items));
    TRY(make_table(&supply, REC_TABLE_LIFETIME_BUCKETS, b->lifetime_buckets.items));
    b->cohorts = (struct cohorts_vec){
        .items = history.cohorts.items, .len = history.cohorts.len, .cap = history.cohorts.cap};
    history.cohorts = (struct rec_cohort_vec){0};
    return ERR_OK;
}

static MUST_USE enum err fill_slices(struct heaptrack *h)
{
    struct recording_builder *b = h->import->b;
    const struct series *series = &h->totals.series;
    b->slice_ms = series->slice_ms;
    TRY(slices_vec_resize(&b->slices, series->current + 1));
    b->slices.len = series_collect(series, &h->totals.sums, b->slices.items);
    for (uint32_t i = 0; i < b->slices.len; i++) {
        const struct rec_rss_sample sample = {.time_ms = (uint64_t)i << series->slice_shift,
                                              .rss_bytes = h->rss_bytes[i]};
        if (sample.rss_bytes > 0) {
            TRY(rss_samples_vec_push(&b->rss_samples, sample));
            uint64_t *highest = &b->processes.items[0].peak_rss_bytes;
            *highest = max_u64(*highest, sample.rss_bytes);
        }
    }
    return ERR_OK;
}

enum err heaptrack_fill_tables(struct heaptrack *h)
{
    const struct heap_totals *totals = &h->totals;
    struct recording_builder *b = h->import->b;
    TRY(heap_totals_finish(&h->totals));
    TRY(fill_rows(h));
    TRY(fill_history(h));
    TRY(fill_slices(h));
    b->totals.peak_time_ms = totals->peak_time_ms;
    b->processes.items[0].peak_bytes = totals->peak_bytes;
    b->processes.items[0].end_ms = totals->now_ms;
    b->threads.items[0].end_ms = totals->now_ms;
    b->meta.runtime_ms = totals->now_ms;
    recording_builder_sum(b);
    return ERR_OK;
}
