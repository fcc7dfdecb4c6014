// SPDX-License-Identifier: MIT
// import_heaptrack: files of heaptrack, versions 1 to 3, interpreted or raw (heaptrack -r).
//
// This part reads lines and knows the letters of each kind of file; heaptrack_code.c and
// heaptrack_events.c interpret the lines. docs/user/import.md lists the differences to
// heaptrack_print, with their reasons.
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "formats/import/heaptrack_file.h"
#include "formats/import/import_formats.h"

enum {
    VERSION_OLDEST = 1,
    VERSION_LATEST = 3,
    COMMAND_MAX_BYTES = 16 << 10, // heaptrack writes at most 4096
    LINES_PER_CHECK = 4096,       // lines between checks of the memory
    NEVER_INTERPRETED = 0x10200,  // heaptrack 1.2.0 did not write its file version, which was 1
};

enum line_kind {
    LINE_RAW = 1 << 0,
    LINE_INTERPRETED = 1 << 1,
    LINE_BOTH = LINE_RAW | LINE_INTERPRETED,
};

static MUST_USE enum err read_version(struct heaptrack *h, struct bytes line)
{
    uint64_t tool;
    uint64_t version = 0;
    if (!heaptrack_number(&line, &tool)) {
        return heaptrack_refuse(h, "heaptrack's version is missing");
    }
    if (!heaptrack_number(&line, &version) && tool == NEVER_INTERPRETED) {
        version = 1;
    }
    if (version < VERSION_OLDEST || version > VERSION_LATEST) {
        return err_set(h->import->info, ERR_UNSUPPORTED,
                       "'%s' has heaptrack's file format %" PRIu64 "; this version reads 1 to %d",
                       h->import->in->path, version, VERSION_LATEST);
    }
    h->version = version;
    char text[64];
    (void)snprintf(text, sizeof(text), "heaptrack %" PRIu64 ".%" PRIu64 ".%" PRIu64, tool >> 16,
                   tool >> 8 & 0xff, tool & 0xff); // fits
    return recording_builder_string(h->import->b, text, &h->import->b->meta.tool_version);
}

// Read the command line. No version writes its length. Arguments are not quoted, so a line feed in
// one begins a line without a meaning (see is_command_further).
static MUST_USE enum err read_command(struct heaptrack *h, struct bytes line)
{
    struct rec_meta *meta = &h->import->b->meta;
    line.data += line.len > 0; // the space
    line.len -= line.len > 0;
    strbuf_append(&h->command, line.data, line.len);
    const uint8_t *space = memchr(line.data, ' ', line.len);
    line.len = space != NULL ? (size_t)(space - line.data) : line.len;
    return meta->program != 0 ? ERR_OK : import_string(h->import, line, &meta->program);
}

// Return whether the line continues the command. Since version 2 the line of the machine's pages
// follows the command; a line before that is the rest of an argument.
static bool is_command_further(const struct heaptrack *h, struct bytes line)
{
    uint64_t number;
    bool has_begun = h->command.len > 0 && h->version >= 2 && !h->has_pages;
    struct bytes rest = {.data = line.data + 1, .len = line.len > 0 ? line.len - 1 : 0};
    bool is_pages = line.len > 0 && line.data[0] == 'I' && heaptrack_number(&rest, &number) &&
                    heaptrack_number(&rest, &number) && rest.len == 0;
    return has_begun && !is_pages;
}

static MUST_USE enum err read_pages(struct heaptrack *h, struct bytes line)
{
    uint64_t page_bytes;
    uint64_t pages;
    uint64_t memory_bytes;
    if (!heaptrack_number(&line, &page_bytes) || !heaptrack_number(&line, &pages) ||
        page_bytes > UINT32_MAX || __builtin_mul_overflow(page_bytes, pages, &memory_bytes)) {
        return heaptrack_refuse(h, "the size of the machine's memory makes no sense");
    }
    h->has_pages = true;
    h->page_bytes = page_bytes;
    h->import->b->meta.page_bytes = (uint32_t)page_bytes;
    h->import->b->meta.memory_bytes = memory_bytes;
    return ERR_OK;
}

// Advance the time to now_ms. If time slices merge, their RSS merges, too.
static MUST_USE enum err advance_clock(struct heaptrack *h, uint64_t now_ms)
{
    const uint32_t shift_before = h->totals.series.slice_shift;
    TRY(heap_totals_advance(&h->totals, now_ms));
    const uint32_t merged = h->totals.series.slice_shift - shift_before;
    for (size_t i = 0; i < SERIES_SLICES_MAX && merged > 0; i++) {
        const uint64_t rss_bytes = h->rss_bytes[i];
        h->rss_bytes[i] = 0;
        uint64_t *into = &h->rss_bytes[i >> merged];
        *into = max_u64(*into, rss_bytes);
    }
    return ERR_OK;
}

static MUST_USE enum err read_time(struct heaptrack *h, struct bytes line)
{
    uint64_t now_ms;
    if (!heaptrack_number(&line, &now_ms) || now_ms > INT64_MAX / NS_PER_MS) { // fits as ns, too
        return heaptrack_refuse(h, "the time makes no sense");
    }
    return advance_clock(h, now_ms);
}

static MUST_USE enum err read_rss(struct heaptrack *h, struct bytes line)
{
    uint64_t pages;
    uint64_t rss_bytes;
    if (!heaptrack_number(&line, &pages) ||
        __builtin_mul_overflow(pages, h->page_bytes, &rss_bytes)) {
        return heaptrack_refuse(h, "the RSS makes no sense");
    }
    uint64_t *highest = &h->rss_bytes[h->totals.series.current];
    *highest = max_u64(*highest, rss_bytes);
    return ERR_OK;
}

// Read a LeakSanitizer rule of the program. In version 3 it is a sized string, which heaptrack's
// own readers ignore.
static MUST_USE enum err read_suppression(struct heaptrack *h, struct bytes line)
{
    struct bytes rule;
    if (!heaptrack_string(h, &line, false, &rule) || line.len > 0) {
        return heaptrack_refuse(h, "the suppression is not as long as the line says");
    }
    strbuf_append(&h->suppressions, rule.data, rule.len);
    strbuf_append_char(&h->suppressions, '\n');
    return strbuf_result(&h->suppressions);
}

static MUST_USE enum err add_note(struct heaptrack *h, const char *name, const char *text)
{
    struct recording_builder *b = h->import->b;
    struct rec_counter note = {.kind = REC_COUNTER_NOTE, .value = 1};
    TRY(recording_builder_string(b, name, &note.name));
    TRY(recording_builder_string(b, text, &note.text));
    return counters_vec_push(&b->counters, note);
}

static MUST_USE enum err read_attached(struct heaptrack *h, struct bytes line)
{
    (void)line; // empty
    return add_note(
        h, "attached",
        "heaptrack was attached to the running program: blocks allocated before are missing");
}

static MUST_USE enum err read_comment(struct heaptrack *h, struct bytes line)
{
    (void)line; // heaptrack_interpret writes two at the end
    h->has_end_mark = true;
    return ERR_OK;
}

static const struct {
    enum err (*read)(struct heaptrack *h, struct bytes line);
    enum line_kind kind;
} lines[] = {
    ['v'] = {read_version, LINE_BOTH},
    ['X'] = {read_command, LINE_BOTH},
    ['I'] = {read_pages, LINE_BOTH},
    ['A'] = {read_attached, LINE_BOTH},
    ['S'] = {read_suppression, LINE_BOTH},
    ['c'] = {read_time, LINE_BOTH},
    ['R'] = {read_rss, LINE_BOTH},
    ['#'] = {read_comment, LINE_INTERPRETED},
    ['x'] = {heaptrack_read_executable, LINE_RAW},
    ['m'] = {heaptrack_read_module, LINE_RAW},
    ['s'] = {heaptrack_read_string, LINE_INTERPRETED},
    ['i'] = {heaptrack_read_instruction, LINE_INTERPRETED},
    ['a'] = {heaptrack_read_kind, LINE_INTERPRETED},
    ['t'] = {heaptrack_read_trace, LINE_BOTH},
    ['+'] = {heaptrack_read_allocation, LINE_BOTH},
    ['-'] = {heaptrack_read_free, LINE_BOTH},
};

static MUST_USE enum err read_line(struct heaptrack *h, struct bytes line)
{
    if (UNLIKELY(!h->has_pages) && is_command_further(h, line)) {
        strbuf_append_char(&h->command, '\n');
        strbuf_append(&h->command, line.data, line.len);
        return h->command.len > COMMAND_MAX_BYTES
                   ? heaptrack_refuse(h, "the command line before this has no end")
                   : strbuf_result(&h->command);
    }
    if (UNLIKELY(line.len == 0)) {
        return ERR_OK;
    }
    uint8_t letter = line.data[0];
    if (letter >= ARRAY_LEN(lines) || lines[letter].read == NULL ||
        (line.len > 1 && line.data[1] != ' ')) {
        return heaptrack_refuse(h, "this is not a line of a heaptrack file");
    }
    h->is_raw |= lines[letter].kind == LINE_RAW;
    h->is_interpreted |= lines[letter].kind == LINE_INTERPRETED;
    if (h->is_raw && h->is_interpreted) {
        return heaptrack_refuse(h, "the file mixes lines of a raw and of an interpreted file");
    }
    return lines[letter].read(h, (struct bytes){.data = line.data + 1, .len = line.len - 1});
}

// Return the memory beside the builder's tables, roughly.
static uint64_t bytes_of(const struct heaptrack *h)
{
    enum {
        MAP_SLOT_BYTES = sizeof(uint64_t) + sizeof(uint32_t),
    };
    uint64_t slots = h->frame_of.slot_count + h->kind_of.slot_count + h->block_of.slot_count;
    return heap_totals_bytes(&h->totals) + slots * MAP_SLOT_BYTES +
           h->strings.cap * sizeof(uint32_t) + h->kinds.cap * sizeof(struct allocation_kind) +
           h->births.cap * sizeof(struct birth) + h->ranges.cap * sizeof(struct raw_range) +
           h->blocks.cap * sizeof(struct raw_block);
}

static MUST_USE enum err read_lines(struct heaptrack *h)
{
    struct import *import = h->import;
    struct unpacked *in = import->in;
    uint64_t next_check = LINES_PER_CHECK;
    for (;;) {
        struct bytes line;
        if (LIKELY(h->is_interpreted)) {
            TRY(heaptrack_read_run(h));
        }
        enum err err = unpacked_line(in, &line, import->info);
        if (err == ERR_NOT_FOUND) {
            return ERR_OK;
        }
        TRY(err);
        if (UNLIKELY(in->is_line_cut)) {
            return ERR_OK; // half a number may be a different one
        }
        TRY(read_line(h, line));
        if (UNLIKELY(in->line_number >= next_check)) {
            TRY(import_check_memory(import, bytes_of(h)));
            // The sum visits every row.
            next_check = in->line_number + LINES_PER_CHECK + h->totals.rows.rows.len;
        }
    }
}

static void heaptrack_release(struct heaptrack *h)
{
    heap_totals_release(&h->totals);
    strbuf_release(&h->suppressions);
    strbuf_release(&h->command);
    u32_vec_release(&h->strings);
    allocation_kind_vec_release(&h->kinds);
    birth_vec_release(&h->births);
    raw_range_vec_release(&h->ranges);
    map_u64_release(&h->frame_of);
    map_u64_release(&h->kind_of);
    raw_block_vec_release(&h->blocks);
    map_u64_release(&h->block_of);
}

// heaptrack_interpret ends its files with comments. A raw file has no end mark.
static void describe_damage(const struct heaptrack *h)
{
    struct import *import = h->import;
    if (import->in->is_cut || (h->is_interpreted && !h->has_end_mark)) {
        (void)snprintf(import->damage, sizeof(import->damage),
                       "it ends after line %" PRIu64 ", and the rest is missing",
                       import->in->line_number - import->in->is_line_cut); // fits
    }
}

static MUST_USE enum err finish_recording(struct heaptrack *h)
{
    struct recording_builder *b = h->import->b;
    TRY(heaptrack_fill_tables(h));
    if (h->is_raw) {
        b->meta.unknown &= ~(uint32_t)REC_UNKNOWN_LIFETIMES;
    } else {
        TRY(add_note(h, "estimated_births",
                     "the file does not say which of several equal blocks is freed: in a range of "
                     "time, the youngest is taken to be"));
    }
    describe_damage(h);
    TRY(import_string(h->import, strbuf_bytes(&h->command), &b->meta.command_line));
    return import_string(h->import, strbuf_bytes(&h->suppressions), &b->meta.suppressions);
}

static enum err read_heaptrack(struct import *import)
{
    CLEANUP(heaptrack_release)
    struct heaptrack h = {.import = import,
                          .last_allocated = HEAPTRACK_NOTHING,
                          .free_birth = REC_NONE,
                          .free_block = REC_NONE};
    heap_totals_init(&h.totals, UINT32_MAX, UINT32_MAX);
    TRY(recording_builder_thread(import->b, 0, 0, "all threads", &h.thread));
    TRY(read_lines(&h));
    return finish_recording(&h);
}

// Recognize the first line: "v", heaptrack's version, and the file's version.
static bool recognizes_heaptrack(struct bytes head)
{
    const uint8_t *end = memchr(head.data, '\n', head.len);
    struct bytes line = {.data = head.data + 1,
                         .len = end != NULL ? (size_t)(end - head.data) - 1 : 0};
    uint64_t tool;
    uint64_t version;
    return end != NULL && end > head.data + 2 && memcmp(head.data, "v ", 2) == 0 &&
           heaptrack_number(&line, &tool) && (line.len == 0 || heaptrack_number(&line, &version)) &&
           line.len == 0;
}

const struct importer importer_heaptrack = {
    .name = "heaptrack",
    .phrase = "reading the heaptrack file",
    .unknown = REC_UNKNOWN_THREADS | REC_UNKNOWN_LIFETIMES,
    .recognizes = recognizes_heaptrack,
    .read = read_heaptrack,
};
