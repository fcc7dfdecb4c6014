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

static void read_version(struct heaptrack *h, struct bytes line)
{
    uint64_t tool = 0;
    uint64_t version = 0;
    heaptrack_require(h, heaptrack_number(&line, &tool), "heaptrack's version is missing");
    if (!heaptrack_number(&line, &version) && tool == NEVER_INTERPRETED) {
        version = 1;
    }
    if (version < VERSION_OLDEST || version > VERSION_LATEST) {
        import_end(h->import, err_set(h->import->info, ERR_UNSUPPORTED,
                                      "'%s' has heaptrack's file format %" PRIu64
                                      "; this version reads 1 to %d",
                                      h->import->in->path, version, VERSION_LATEST));
    }
    h->version = version;
    char text[64];
    (void)snprintf(text, sizeof(text), "heaptrack %" PRIu64 ".%" PRIu64 ".%" PRIu64, tool >> 16,
                   tool >> 8 & 0xff, tool & 0xff); // fits
    import_need(h->import,
                recording_builder_string(h->import->b, text, &h->import->b->meta.tool_version));
}

// Read the command line. No version writes its length. Arguments are not quoted, so a line feed in
// one begins a line without a meaning (see is_command_further).
static void read_command(struct heaptrack *h, struct bytes line)
{
    struct rec_meta *meta = &h->import->b->meta;
    line.data += line.len > 0; // the space
    line.len -= line.len > 0;
    strbuf_append(&h->command, line.data, line.len);
    const uint8_t *space = memchr(line.data, ' ', line.len);
    line.len = space != NULL ? (size_t)(space - line.data) : line.len;
    meta->program = meta->program != 0 ? meta->program : import_string(h->import, line);
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

static void read_pages(struct heaptrack *h, struct bytes line)
{
    uint64_t page_bytes = 0;
    uint64_t pages = 0;
    uint64_t memory_bytes = 0;
    heaptrack_require(h,
                      heaptrack_number(&line, &page_bytes) && heaptrack_number(&line, &pages) &&
                          page_bytes <= UINT32_MAX &&
                          !__builtin_mul_overflow(page_bytes, pages, &memory_bytes),
                      "the size of the machine's memory makes no sense");
    h->has_pages = true;
    h->page_bytes = page_bytes;
    h->import->b->meta.page_bytes = (uint32_t)page_bytes;
    h->import->b->meta.memory_bytes = memory_bytes;
}

// Advance the time to now_ms. If time slices merge, their RSS merges, too.
static void advance_clock(struct heaptrack *h, uint64_t now_ms)
{
    const uint32_t shift_before = h->totals.series.slice_shift;
    import_need(h->import, heap_totals_advance(&h->totals, now_ms));
    const uint32_t merged = h->totals.series.slice_shift - shift_before;
    for (size_t i = 0; i < SERIES_SLICES_MAX && merged > 0; i++) {
        const uint64_t rss_bytes = h->rss_bytes[i];
        h->rss_bytes[i] = 0;
        uint64_t *into = &h->rss_bytes[i >> merged];
        *into = max_u64(*into, rss_bytes);
    }
}

static void read_time(struct heaptrack *h, struct bytes line)
{
    uint64_t now_ms = 0;
    heaptrack_require(
        h, heaptrack_number(&line, &now_ms) && now_ms <= INT64_MAX / NS_PER_MS, // fits as ns, too
        "the time makes no sense");
    advance_clock(h, now_ms);
}

static void read_rss(struct heaptrack *h, struct bytes line)
{
    uint64_t pages = 0;
    uint64_t rss_bytes = 0;
    heaptrack_require(h,
                      heaptrack_number(&line, &pages) &&
                          !__builtin_mul_overflow(pages, h->page_bytes, &rss_bytes),
                      "the RSS makes no sense");
    uint64_t *highest = &h->rss_bytes[h->totals.series.current];
    *highest = max_u64(*highest, rss_bytes);
}

// Read a LeakSanitizer rule of the program. In version 3 it is a sized string, which heaptrack's
// own readers ignore.
static void read_suppression(struct heaptrack *h, struct bytes line)
{
    struct bytes rule = {0};
    heaptrack_require(h, heaptrack_string(h, &line, false, &rule) && line.len == 0,
                      "the suppression is not as long as the line says");
    strbuf_append(&h->suppressions, rule.data, rule.len);
    strbuf_append_char(&h->suppressions, '\n');
    import_need(h->import, strbuf_result(&h->suppressions));
}

static void read_attached(struct heaptrack *h, struct bytes line)
{
    (void)line; // empty
    import_note(
        h->import, "attached", 1,
        "heaptrack was attached to the running program: blocks allocated before are missing");
}

static void read_comment(struct heaptrack *h, struct bytes line)
{
    (void)line; // heaptrack_interpret writes two at the end
    h->has_end_mark = true;
}

static const struct {
    void (*read)(struct heaptrack *h, struct bytes line);
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

static void read_line(struct heaptrack *h, struct bytes line)
{
    if (UNLIKELY(!h->has_pages) && is_command_further(h, line)) {
        strbuf_append_char(&h->command, '\n');
        strbuf_append(&h->command, line.data, line.len);
        heaptrack_require(h, h->command.len <= COMMAND_MAX_BYTES,
                          "the command line before this has no end");
        import_need(h->import, strbuf_result(&h->command));
        return;
    }
    if (UNLIKELY(line.len == 0)) {
        return;
    }
    uint8_t letter = line.data[0];
    heaptrack_require(h,
                      letter < ARRAY_LEN(lines) && lines[letter].read != NULL &&
                          (line.len == 1 || line.data[1] == ' '),
                      "this is not a line of a heaptrack file");
    h->is_raw |= lines[letter].kind == LINE_RAW;
    h->is_interpreted |= lines[letter].kind == LINE_INTERPRETED;
    heaptrack_require(h, !h->is_raw || !h->is_interpreted,
                      "the file mixes lines of a raw and of an interpreted file");
    lines[letter].read(h, (struct bytes){.data = line.data + 1, .len = line.len - 1});
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

static void read_lines(struct heaptrack *h)
{
    const struct unpacked *in = h->import->in;
    uint64_t next_check = LINES_PER_CHECK;
    for (;;) {
        struct bytes line;
        if (LIKELY(h->is_interpreted)) {
            heaptrack_read_run(h);
        }
        if (!import_next_line(h->import, &line)) {
            return;
        }
        read_line(h, line);
        if (UNLIKELY(in->line_number >= next_check)) {
            import_check_memory(h->import, bytes_of(h));
            // The sum visits every row.
            next_check = in->line_number + LINES_PER_CHECK + h->totals.rows.rows.len;
        }
    }
}

static void release_heaptrack(void *state)
{
    struct heaptrack *h = state;
    row_history_release(&h->history);
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

static void finish_recording(struct heaptrack *h)
{
    struct recording_builder *b = h->import->b;
    heaptrack_fill_tables(h);
    if (h->is_raw) {
        b->meta.unknown &= ~(uint32_t)REC_UNKNOWN_LIFETIMES;
    } else {
        import_note(h->import, "estimated_births", 1,
                    "the file does not say which of several equal blocks is freed: in a range of "
                    "time, the youngest is taken to be");
    }
    describe_damage(h);
    b->meta.command_line = import_string(h->import, strbuf_bytes(&h->command));
    b->meta.suppressions = import_string(h->import, strbuf_bytes(&h->suppressions));
}

static void read_heaptrack(struct import *import, void *state)
{
    struct heaptrack *h = state;
    h->import = import;
    h->last_allocated = HEAPTRACK_NOTHING;
    h->free_birth = REC_NONE;
    h->free_block = REC_NONE;
    heap_totals_init(&h->totals, UINT32_MAX, UINT32_MAX);
    h->thread = import_thread(import, 0, "all threads");
    read_lines(h);
    finish_recording(h);
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
    .state_bytes = sizeof(struct heaptrack),
    .release = release_heaptrack,
    .read = read_heaptrack,
};
