// SPDX-License-Identifier: MIT
// recording_text: see recording_text.h.
#include "recording/test_support/recording_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host/text/number.h"
#include "host/text/strbuf.h"

enum {
    SLICE_MS = 100,
    MAX_NUMBERS = 9,
    MAX_INLINED = 16,
    MAX_FRAME_BYTES = 1024,
    FRAME_OFFSET_STEP = 16, // distance between the offsets of frames in a module
};

struct drawing {
    struct recording_builder *b;
    struct string_table frame_texts; // id - 1 = frame
    uint32_t process;                // REC_NONE before the first
    uint32_t thread;                 // REC_NONE before the first
    uint32_t row;                    // REC_NONE before the first
};

static bool take_number(const char **at, uint64_t *out)
{
    const char *end = *at;
    uint64_t value;
    if (!number_take(&end, 10, &value) || (*end != ' ' && *end != '\0')) {
        return false;
    }
    *at = end + strspn(end, " ");
    *out = value;
    return true;
}

// Read at least `least` and at most `most` numbers; the rest are 0. Return false for anything else.
static bool take_numbers(const char *at, size_t least, size_t most, uint64_t *out)
{
    size_t count = 0;
    memset(out, 0, most * sizeof(*out));
    at += strspn(at, " ");
    while (count < most && *at != '\0') {
        if (!take_number(&at, &out[count])) {
            return false;
        }
        count++;
    }
    return count >= least && *at == '\0';
}

// Split "FUNCTION(FILE:LINE)" in place.
static struct builder_symbol cut_symbol(char *text)
{
    struct builder_symbol symbol = {.function = text};
    char *place = strrchr(text, '(');
    char *colon = place != NULL ? strrchr(place, ':') : NULL;
    if (colon == NULL || text[strlen(text) - 1] != ')') {
        return symbol;
    }
    *place = '\0';
    *colon = '\0';
    symbol.file = place + 1;
    symbol.line = (uint32_t)number_field(colon + 1);
    return symbol;
}

static enum err add_frame(struct recording_builder *b, char *text, uint32_t *out_frame)
{
    uint32_t module = REC_NONE;
    char *bang = strchr(text, '!');
    if (bang != NULL) {
        *bang = '\0';
    }
    TRY(recording_builder_module(b, bang != NULL ? text : "program", &module));
    struct builder_symbol symbols[MAX_INLINED];
    uint32_t count = 0;
    char *at = bang != NULL ? bang + 1 : text;
    while (at != NULL && count < MAX_INLINED) {
        char *arrow = strstr(at, "=>");
        if (arrow != NULL) {
            *arrow = '\0';
        }
        // The text has the outermost function first, the table the innermost.
        memmove(symbols + 1, symbols, count * sizeof(*symbols));
        symbols[0] = cut_symbol(at);
        count++;
        at = arrow != NULL ? arrow + 2 : NULL;
    }
    uint64_t offset = (b->frames.len + 1) * FRAME_OFFSET_STEP;
    return recording_builder_frame(b, module, offset, symbols, count, out_frame);
}

static enum err find_frame(struct drawing *d, const char *text, size_t len, uint32_t *out_frame)
{
    uint32_t id = 0;
    char copy[MAX_FRAME_BYTES];
    if (len == 0 || len >= sizeof(copy)) {
        return ERR_INVALID;
    }
    TRY(string_table_intern(&d->frame_texts, text, len, &id));
    if (id <= d->b->frames.len) {
        *out_frame = id - 1;
        return ERR_OK;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    return add_frame(d->b, copy, out_frame);
}

static enum err ensure_thread(struct drawing *d)
{
    if (d->process == REC_NONE) {
        TRY(recording_builder_process(d->b, 1000, "program", &d->process));
        d->b->processes.items[d->process].flags = REC_PROCESS_MAIN;
    }
    if (d->thread == REC_NONE) {
        uint32_t pid = d->b->processes.items[d->process].pid;
        TRY(recording_builder_thread(d->b, d->process, pid, "main", &d->thread));
    }
    return ERR_OK;
}

// Find the node of a stack, and the numbers at the end of its line: function names may hold spaces.
static enum err
take_stack(struct drawing *d, const char *line, size_t most, uint64_t *numbers, uint32_t *out_node)
{
    TRY(ensure_thread(d));
    size_t end = strlen(line);
    while (end > 0 && strchr("0123456789 ", line[end - 1]) != NULL) {
        end--;
    }
    if (!take_numbers(line + end, 2, most, numbers) || line[end] != ' ') {
        return ERR_INVALID;
    }
    uint32_t node = 0;
    for (size_t at = 0; at < end;) {
        size_t len = strcspn(line + at, ";");
        len = at + len > end ? end - at : len;
        uint32_t frame = 0;
        TRY(find_frame(d, line + at, len, &frame));
        TRY(recording_builder_node(d->b, node, frame, &node));
        at += len + 1;
    }
    *out_node = node;
    return ERR_OK;
}

static enum err draw_event(struct drawing *d, const char *line)
{
    uint64_t numbers[2];
    struct rec_adhoc event = {0};
    TRY(take_stack(d, line, 2, numbers, &event.node));
    event.process = d->process;
    event.events = numbers[0];
    event.weight = numbers[1];
    return adhoc_vec_push(&d->b->adhoc, event);
}

static enum err draw_stack(struct drawing *d, const char *line)
{
    uint64_t numbers[MAX_NUMBERS];
    uint32_t node = 0;
    TRY(take_stack(d, line, MAX_NUMBERS, numbers, &node));
    TRY(recording_builder_row(d->b, d->thread, node, &d->row));
    struct rec_row *row = &d->b->rows.items[d->row];
    uint64_t *const costs[MAX_NUMBERS] = {
        &row->allocations, &row->allocated_bytes, &row->frees,
        &row->freed_bytes, &row->temporary,       &row->temporary_bytes,
        &row->peak_blocks, &row->peak_bytes,      &row->own_peak_bytes};
    for (size_t i = 0; i < MAX_NUMBERS; i++) {
        *costs[i] += numbers[i];
    }
    return ERR_OK;
}

static enum err draw_process(struct drawing *d, const char *name)
{
    uint32_t pid = 1000 + (uint32_t)d->b->processes.len;
    TRY(recording_builder_process(d->b, pid, name, &d->process));
    if (d->process == 0) {
        d->b->processes.items[0].flags = REC_PROCESS_MAIN;
    }
    d->thread = REC_NONE;
    return ERR_OK;
}

static enum err draw_realloc(struct drawing *d, const char *line)
{
    uint64_t n[4];
    if (d->row == REC_NONE || !take_numbers(line, 4, 4, n)) {
        return ERR_INVALID;
    }
    return reallocs_vec_push(&d->b->reallocs, (struct rec_realloc){.row = d->row,
                                                                   .reallocs = n[0],
                                                                   .moved_bytes = n[1],
                                                                   .grown_bytes = n[2],
                                                                   .largest_bytes = n[3]});
}

static enum err draw_left(struct drawing *d, const char *line)
{
    uint64_t left_ms;
    if (d->process == REC_NONE || !take_numbers(line, 1, 1, &left_ms)) {
        return ERR_INVALID;
    }
    d->b->processes.items[d->process].left_ms = left_ms + 1;
    return ERR_OK;
}

static enum err draw_thread(struct drawing *d, const char *name)
{
    if (d->process == REC_NONE) {
        TRY(draw_process(d, "program"));
    }
    return recording_builder_thread(d->b, d->process, 1000 + (uint32_t)d->b->threads.len, name,
                                    &d->thread);
}

static enum err draw_cell(struct drawing *d, const char *line)
{
    uint64_t n[6];
    if (d->row == REC_NONE || !take_numbers(line, 3, 6, n)) {
        return ERR_INVALID;
    }
    return cells_vec_push(&d->b->cells, (struct rec_cell){.row = d->row,
                                                          .slice = (uint32_t)n[0],
                                                          .allocations = n[1],
                                                          .allocated_bytes = n[2],
                                                          .frees = n[3],
                                                          .freed_bytes = n[4],
                                                          .temporary = n[5]});
}

static bool take_bucket(const struct drawing *d, const char *line, struct rec_bucket *out)
{
    uint64_t n[3];
    if (d->row == REC_NONE || !take_numbers(line, 3, 3, n) || n[0] >= REC_BUCKET_COUNT) {
        return false;
    }
    *out =
        (struct rec_bucket){.row = d->row, .bucket = (uint32_t)n[0], .count = n[1], .bytes = n[2]};
    return true;
}

static enum err draw_size_bucket(struct drawing *d, const char *line)
{
    struct rec_bucket bucket;
    return take_bucket(d, line, &bucket) ? size_buckets_vec_push(&d->b->size_buckets, bucket)
                                         : ERR_INVALID;
}

static enum err draw_lifetime_bucket(struct drawing *d, const char *line)
{
    struct rec_bucket bucket;
    return take_bucket(d, line, &bucket)
               ? lifetime_buckets_vec_push(&d->b->lifetime_buckets, bucket)
               : ERR_INVALID;
}

static enum err draw_cohort(struct drawing *d, const char *line)
{
    uint64_t born = 0;
    uint64_t rest[3] = {REC_NONE, 0, 0};
    if (d->row == REC_NONE || !take_number(&line, &born)) {
        return ERR_INVALID;
    }
    bool is_alive = line[0] == '-' && line[1] == ' ';
    if (!take_numbers(is_alive ? line + 2 : line, is_alive ? 2 : 3, is_alive ? 2 : 3,
                      is_alive ? rest + 1 : rest)) {
        return ERR_INVALID;
    }
    return cohorts_vec_push(&d->b->cohorts, (struct rec_cohort){.row = d->row,
                                                                .born_slice = (uint32_t)born,
                                                                .freed_slice = (uint32_t)rest[0],
                                                                .blocks = (uint32_t)rest[1],
                                                                .bytes = rest[2]});
}

static enum err draw_line(struct drawing *d, const char *line)
{
    static const struct {
        const char *prefix;
        enum err (*draw)(struct drawing *d, const char *rest);
    } kinds[] = {
        {"process ", draw_process},
        {"thread ", draw_thread},
        {"@", draw_cell},
        {"size ", draw_size_bucket},
        {"life ", draw_lifetime_bucket},
        {"cohort ", draw_cohort},
        {"event ", draw_event},
        {"left ", draw_left},
        {"realloc ", draw_realloc},
    };
    line += strspn(line, " \t");
    if (*line == '\0' || *line == '#') {
        return ERR_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t len = strlen(kinds[i].prefix);
        if (strncmp(line, kinds[i].prefix, len) == 0) {
            return kinds[i].draw(d, line + len);
        }
    }
    return draw_stack(d, line);
}

// Return the live bytes of the processes that leave the heap in `slice`.
static uint64_t left_bytes(const struct recording_builder *b, size_t slice)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < b->rows.len; i++) {
        const struct rec_row *row = &b->rows.items[i];
        const uint32_t process = b->threads.items[row->thread].process;
        const uint64_t left_ms = b->processes.items[process].left_ms;
        if (left_ms != 0 && (left_ms - 1) / b->slice_ms == slice) {
            bytes += row->allocated_bytes - row->freed_bytes;
        }
    }
    return bytes;
}

enum err recording_builder_slices(struct recording_builder *b, size_t count, uint64_t slice_ms)
{
    b->slice_ms = slice_ms;
    TRY(slices_vec_resize(&b->slices, count));
    for (size_t i = 0; i < b->cells.len; i++) {
        const struct rec_cell *cell = &b->cells.items[i];
        struct rec_slice *slice = &b->slices.items[cell->slice];
        slice->allocations += cell->allocations;
        slice->allocated_bytes += cell->allocated_bytes;
        slice->frees += cell->frees;
        slice->freed_bytes += cell->freed_bytes;
        slice->temporary += cell->temporary;
    }
    uint64_t live = 0;
    for (size_t i = 0; i < count; i++) {
        struct rec_slice *slice = &b->slices.items[i];
        uint64_t before = live;
        live += slice->allocated_bytes - slice->freed_bytes - left_bytes(b, i);
        slice->live_bytes = live;
        slice->live_max_bytes = before > live ? before : live;
    }
    return ERR_OK;
}

// Make one slice for each number up to the highest of a cell or cohort.
static enum err make_slices(struct recording_builder *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->cells.len; i++) {
        count = b->cells.items[i].slice >= count ? b->cells.items[i].slice + 1 : count;
    }
    for (size_t i = 0; i < b->cohorts.len; i++) {
        const struct rec_cohort *cohort = &b->cohorts.items[i];
        count = cohort->born_slice >= count ? cohort->born_slice + 1 : count;
        if (cohort->freed_slice != REC_NONE && cohort->freed_slice >= count) {
            count = cohort->freed_slice + 1;
        }
    }
    b->meta.runtime_ms = count * SLICE_MS;
    return recording_builder_slices(b, count, count > 0 ? SLICE_MS : 0);
}

static void release_drawing(struct drawing *d)
{
    string_table_release(&d->frame_texts);
}

enum err
recording_builder_text(struct recording_builder *b, const char *text, struct err_info *info)
{
    CLEANUP(release_drawing)
    struct drawing d = {.b = b, .process = REC_NONE, .thread = REC_NONE, .row = REC_NONE};
    CLEANUP(strbuf_release) struct strbuf line = {0};
    const char *const end = text + strlen(text);
    while (text < end) {
        // Not strcspn: under a sanitizer that checks strings strictly it reads the whole rest.
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        const size_t len = (size_t)((feed != NULL ? feed : end) - text);
        strbuf_clear(&line);
        strbuf_append(&line, text, len);
        TRY(strbuf_result(&line));
        enum err err = draw_line(&d, strbuf_text(&line));
        if (err != ERR_OK) {
            return err_set(info, err, "cannot read the line \"%s\"", strbuf_text(&line));
        }
        text += len + (feed != NULL);
    }
    TRY(recording_builder_string(b, "cairn", &b->meta.source_format));
    recording_builder_sum(b);
    return make_slices(b);
}

enum err recording_from_text(const char *text, struct recording *out, struct err_info *info)
{
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    TRY(recording_builder_init(&b));
    TRY(recording_builder_text(&b, text, info));
    return recording_builder_finish(&b, out);
}
