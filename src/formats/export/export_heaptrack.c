// SPDX-License-Identifier: MIT
// export_heaptrack: a file for heaptrack_print and heaptrack_gui, in heaptrack's format.
//
// A heaptrack file is a log of events, and a profile has no events. So the exporter makes a log
// that gives the same figures for each stack. The log has three moments: the start, the peak, the
// end.
//
//   start  temporary blocks          +t -t, one after the other
//          blocks of neither moment  +a -A, one after the other
//   peak   blocks live at the peak   all of them; the file's maximum
//   end    freed blocks              -p
//          further leaked blocks     +l
//
// Blocks of a stack in one of these groups share its bytes evenly, so that sums are exact and sizes
// are averages. A temporary block that made the peak is the last of its group, and the first to be
// freed. With several threads there may be more such blocks; they do not count as temporary.
//
// An event names a number, and a number is a size and a stack: its "a" line. heaptrack counts a
// free as temporary if the previous event allocated the same number, and heaptrack_print also takes
// number 0 for "no previous event" (docs/user/import.md). Where freeing the first number would make
// a block temporary by mistake, the log frees a second number with the same size and stack (A
// above). heaptrack_gui requires that numbers are first allocated in their order, without gaps. So
// the "a" lines of all allocated numbers come first, and the lines of numbers that are only freed
// follow.
//
// Each location is a separate instruction; inlined functions are ordinary callers. The file has a
// line for each allocation and each free of the run. The command line says that a recording was
// sampled, because readers show no other text.
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "formats/codec/clean_text.h"
#include "formats/codec/packed_stream.h"
#include "formats/export/estimates_note.h"
#include "formats/export/exporter.h"
#include "profile/tables/summary.h"

enum {
    BUFFER_BYTES = 64 << 10,
    HEAPTRACK_VERSION = 0x10500,
};

static const struct clean_rule rule = {0};

// A stack's `blocks` with `bytes` in total. The blocks of kind + 1 are one byte larger.
struct block_group {
    uint32_t kind; // first of its kinds
    uint64_t blocks;
    uint64_t bytes;
};

// A stack's blocks, grouped by the moments at which they are live.
struct fate {
    struct block_group temporary;
    struct block_group neither;
    struct block_group peak_only;
    struct block_group peak_and_end;
    struct block_group end_only;
};

DEFINE_VEC(fate_vec, struct fate);

// Blocks of one size and stack.
struct block_kind {
    uint64_t size;
    uint32_t node;
    uint32_t number; // number of its "a" line, or REC_NONE
    uint32_t twin;   // number of its second "a" line, or REC_NONE
};

DEFINE_VEC(block_kind_vec, struct block_kind);

struct heaptrack_writer {
    const struct export_view *view; // borrowed
    struct packed_stream packed;    // owned
    struct strbuf buffer;           // owned; uncompressed output
    struct strbuf text;             // owned
    struct string_table strings;    // owned; with the ids of the file
    struct u32_vec instructions;    // owned; number in the file by location, 0: none yet
    uint32_t instruction_count;
    struct block_kind_vec kinds; // owned
    uint32_t number_count;       // number of "a" lines
    uint32_t last_number;        // allocated by the previous event; 0 if none
    struct fate_vec fates;       // owned; one for each stack with allocations
    size_t peaking;              // index of the fate whose temporary block made the peak
};

typedef void (*group_writer)(struct heaptrack_writer *w, const struct block_group *group);

static void writer_release(struct heaptrack_writer *w)
{
    packed_stream_release(&w->packed);
    strbuf_release(&w->buffer);
    strbuf_release(&w->text);
    string_table_release(&w->strings);
    u32_vec_release(&w->instructions);
    fate_vec_release(&w->fates);
    block_kind_vec_release(&w->kinds);
}

static void flush_buffer(struct heaptrack_writer *w, size_t least_bytes)
{
    if (w->buffer.len >= least_bytes) {
        packed_stream_write(&w->packed, strbuf_bytes(&w->buffer));
        strbuf_clear(&w->buffer);
    }
}

// Get the text's number in the file, with a new line for a new text; 0 for "".
static uint32_t write_text(struct heaptrack_writer *w, const char *text)
{
    strbuf_clear(&w->text);
    clean_append(&w->text, text, rule);
    const size_t known = string_table_count(&w->strings);
    const uint32_t id = string_table_add(&w->strings, strbuf_text(&w->text));
    if (id == known) {
        strbuf_printf(&w->buffer, "s %zx %s\n", w->text.len, strbuf_text(&w->text));
    }
    flush_buffer(w, BUFFER_BYTES);
    return id;
}

static void write_instruction(struct heaptrack_writer *w, uint32_t location)
{
    const struct profile *profile = w->view->profile;
    const struct code_location *place = profile_location_get(profile, location);
    const uint32_t module = write_text(w, profile_location_module(profile, location));
    const uint32_t function = write_text(w, profile_location_function(profile, location));
    const uint32_t file = write_text(w, profile_location_file(profile, location));
    strbuf_printf(&w->buffer, "i %" PRIx64 " %x", place->offset, module);
    if (function != 0 || file != 0) {
        strbuf_printf(&w->buffer, " %x", function);
    }
    if (file != 0) {
        strbuf_printf(&w->buffer, " %x %x", file, place->line);
    }
    strbuf_append_char(&w->buffer, '\n');
    w->instructions.items[location] = ++w->instruction_count;
    flush_buffer(w, BUFFER_BYTES);
}

// Write the traces. Each is a node of the tree, with the same number.
static MUST_USE enum err write_traces(struct heaptrack_writer *w)
{
    const struct call_tree *tree = &w->view->tree;
    TRY(u32_vec_resize(&w->instructions, w->view->profile->code.locations.len));
    for (size_t i = 1; i < tree->nodes.len; i++) {
        const struct call_tree_node *node = &tree->nodes.items[i];
        if (w->instructions.items[node->location] == 0) {
            write_instruction(w, node->location);
        }
        strbuf_printf(&w->buffer, "t %x %x\n", w->instructions.items[node->location], node->parent);
    }
    flush_buffer(w, BUFFER_BYTES);
    return ERR_OK;
}

// Split a stack's blocks into groups: every block is in one, and the sums are the stack's costs.
static struct fate decide_fate(const struct costs *costs)
{
    uint64_t allocations = costs_get(costs, COST_ALLOCATIONS);
    uint64_t peak = costs_get(costs, COST_PEAK_BLOCKS);
    uint64_t end = costs_get(costs, COST_LEAKED_ALLOCATIONS);
    uint64_t peak_bytes = costs_get(costs, COST_PEAK_BYTES);
    uint64_t end_bytes = costs_get(costs, COST_LEAKED_BYTES);
    uint64_t temporary = min_u64(costs_get(costs, COST_TEMPORARY), excess_u64(allocations, peak));
    uint64_t others =
        excess_u64(allocations, temporary + peak); // begin after the peak, or are live at neither
                                                   // moment
    uint64_t both = min_u64(excess_u64(end, others), peak);
    // Excess bytes of the groups together are in two of them.
    uint64_t allocated_bytes = costs_get(costs, COST_ALLOCATED_BYTES);
    uint64_t temporary_bytes = temporary > 0 ? costs_get(costs, COST_TEMPORARY_BYTES) : 0;
    uint64_t twice_bytes = excess_u64(peak_bytes + end_bytes + temporary_bytes, allocated_bytes);
    uint64_t both_bytes = both == 0      ? 0
                          : both == end  ? end_bytes
                          : both == peak ? peak_bytes
                                         : min_u64(twice_bytes, min_u64(peak_bytes, end_bytes));
    struct fate fate = {
        .temporary = {.blocks = temporary, .bytes = temporary_bytes},
        .peak_and_end = {.blocks = both, .bytes = both_bytes},
        .peak_only = {.blocks = peak - both, .bytes = excess_u64(peak_bytes, both_bytes)},
        .end_only = {.blocks = end - both, .bytes = excess_u64(end_bytes, both_bytes)},
        .neither = {.blocks = excess_u64(others, end - both)},
    };
    uint64_t late_bytes = peak_bytes + fate.end_only.bytes;
    if (fate.neither.blocks > 0) {
        fate.neither.bytes = excess_u64(allocated_bytes, late_bytes + fate.temporary.bytes);
    } else if (temporary > 0) { // less than the temporary bytes if one block belongs to the peak
        fate.temporary.bytes = excess_u64(allocated_bytes, late_bytes);
    }
    return fate;
}

static uint32_t kind_of(const struct block_group *group, uint64_t block)
{
    return group->kind + (block < group->bytes % group->blocks);
}

static MUST_USE enum err
add_kinds(struct heaptrack_writer *w, uint32_t node, struct block_group *group)
{
    struct block_kind kind = {.size = group->blocks > 0 ? group->bytes / group->blocks : 0,
                              .node = node,
                              .number = REC_NONE,
                              .twin = REC_NONE};
    group->kind = (uint32_t)w->kinds.len;
    for (int i = 0; i < 2 && group->blocks > 0; i++) {
        TRY(block_kind_vec_push(&w->kinds, kind));
        kind.size++;
    }
    return w->kinds.len < REC_NONE / 2 ? ERR_OK : ERR_LIMIT; // a kind may have two numbers
}

static MUST_USE enum err decide_fates(struct heaptrack_writer *w)
{
    const struct call_tree *tree = &w->view->tree;
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        if (costs_get(tree_costs_self(&tree->costs, node), COST_ALLOCATIONS) == 0) {
            continue;
        }
        struct fate fate = decide_fate(tree_costs_self(&tree->costs, node));
        if (fate.temporary.blocks <
            costs_get(tree_costs_self(&tree->costs, node), COST_TEMPORARY)) {
            w->peaking = w->fates.len;
        }
        TRY(add_kinds(w, node, &fate.temporary));
        TRY(add_kinds(w, node, &fate.neither));
        TRY(add_kinds(w, node, &fate.peak_and_end));
        TRY(add_kinds(w, node, &fate.peak_only));
        TRY(add_kinds(w, node, &fate.end_only));
        TRY(fate_vec_push(&w->fates, fate));
    }
    return ERR_OK;
}

static void write_number(struct heaptrack_writer *w, const struct block_kind *kind, uint32_t *out)
{
    strbuf_printf(&w->buffer, "a %" PRIx64 " %x\n", kind->size, kind->node);
    *out = w->number_count++;
    flush_buffer(w, BUFFER_BYTES);
}

static void write_allocation(struct heaptrack_writer *w, uint32_t kind)
{
    w->last_number = w->kinds.items[kind].number;
    strbuf_printf(&w->buffer, "+ %x\n", w->last_number);
    flush_buffer(w, BUFFER_BYTES);
}

static void write_free(struct heaptrack_writer *w, uint32_t kind, bool is_temporary)
{
    struct block_kind *of = &w->kinds.items[kind];
    uint32_t *number = is_temporary || of->number != w->last_number ? &of->number : &of->twin;
    if (*number == REC_NONE) {
        write_number(w, of, number);
    }
    w->last_number = 0;
    strbuf_printf(&w->buffer, "- %x\n", *number);
    flush_buffer(w, BUFFER_BYTES);
}

// Give a kind a number to allocate. A size and stack has one such number, in all groups: the kinds
// of a stack are adjacent and get their numbers in order.
static void number_kind(struct heaptrack_writer *w, uint32_t kind)
{
    struct block_kind *of = &w->kinds.items[kind];
    for (uint32_t i = kind; i > 0 && w->kinds.items[i - 1].node == of->node; i--) {
        const struct block_kind *before = &w->kinds.items[i - 1];
        if (before->size == of->size && before->number != REC_NONE) {
            of->number = before->number;
            return;
        }
    }
    write_number(w, of, &of->number);
}

// Give numbers to the kinds that allocate_group will use, in its order.
static void number_group(struct heaptrack_writer *w, const struct block_group *group)
{
    if (group->blocks > 0 && group->bytes % group->blocks > 0) {
        number_kind(w, group->kind + 1);
    }
    if (group->blocks > 0) {
        number_kind(w, group->kind);
    }
}

static void allocate_group(struct heaptrack_writer *w, const struct block_group *group)
{
    for (uint64_t block = 0; block < group->blocks; block++) {
        write_allocation(w, kind_of(group, block));
    }
}

static void
pass_group(struct heaptrack_writer *w, const struct block_group *group, bool is_temporary)
{
    for (uint64_t block = 0; block < group->blocks; block++) {
        write_allocation(w, kind_of(group, block));
        write_free(w, kind_of(group, block), is_temporary);
    }
}

static void pass_temporary(struct heaptrack_writer *w, const struct block_group *group)
{
    pass_group(w, group, true);
}

static void pass_neither(struct heaptrack_writer *w, const struct block_group *group)
{
    pass_group(w, group, false);
}

// Free a group, the last block first.
static void free_group(struct heaptrack_writer *w, const struct block_group *group, bool is_peaking)
{
    for (uint64_t block = group->blocks; block > 0; block--) {
        write_free(w, kind_of(group, block - 1), is_peaking && block == group->blocks);
    }
}

static void write_start(struct heaptrack_writer *w, group_writer temporary, group_writer neither)
{
    for (size_t i = 0; i < w->fates.len; i++) {
        temporary(w, &w->fates.items[i].temporary);
    }
    for (size_t i = 0; i < w->fates.len; i++) {
        neither(w, &w->fates.items[i].neither);
    }
}

static void write_peak(struct heaptrack_writer *w, group_writer write)
{
    for (size_t i = 0; i <= w->fates.len; i++) {
        size_t number = i < w->fates.len ? i : w->peaking; // comes last
        if (number < w->fates.len && (i == w->fates.len || i != w->peaking)) {
            write(w, &w->fates.items[number].peak_and_end);
            write(w, &w->fates.items[number].peak_only);
        }
    }
}

static void write_frees(struct heaptrack_writer *w)
{
    if (w->peaking < w->fates.len) {
        free_group(w, &w->fates.items[w->peaking].peak_only, true);
    }
    for (size_t i = 0; i < w->fates.len; i++) {
        if (i != w->peaking) {
            free_group(w, &w->fates.items[i].peak_only, false);
        }
    }
}

static void write_end(struct heaptrack_writer *w, group_writer write)
{
    for (size_t i = 0; i < w->fates.len; i++) {
        write(w, &w->fates.items[i].end_only);
    }
}

static void write_numbers(struct heaptrack_writer *w)
{
    write_start(w, number_group, number_group);
    write_peak(w, number_group);
    write_end(w, number_group);
}

static void write_suppressions(struct heaptrack_writer *w, const char *rules)
{
    while (*rules != '\0') {
        size_t len = strcspn(rules, "\n");
        if (len > 0) {
            strbuf_printf(&w->buffer, "S %zx %.*s\n", len, (int)len, rules);
        }
        rules += len + (rules[len] != '\0');
    }
}

static void write_head(struct heaptrack_writer *w)
{
    static const struct estimated_total totals[] = {{"allocations", COST_ALLOCATIONS},
                                                    {"peak", COST_PEAK_BYTES},
                                                    {"leaked", COST_LEAKED_BYTES}};
    const struct profile *profile = w->view->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    uint64_t page_bytes = meta->page_bytes > 0 ? meta->page_bytes : 4096;
    strbuf_printf(&w->buffer, "v %x 3\nX ", HEAPTRACK_VERSION);
    clean_append(&w->buffer, profile_string(profile, meta->command_line), rule);
    estimates_note_append(w->view, tree_costs_total(&w->view->tree.costs, 0), totals,
                          ARRAY_LEN(totals), " [", "]", &w->buffer);
    strbuf_printf(&w->buffer, "\nI %" PRIx64 " %" PRIx64 "\n", page_bytes,
                  meta->memory_bytes / page_bytes);
    write_suppressions(w, profile_string(profile, meta->suppressions));
    flush_buffer(w, BUFFER_BYTES);
}

static MUST_USE enum err write_events(struct heaptrack_writer *w)
{
    struct summary summary;
    TRY(summary_build(&w->view->selection, &summary));
    const struct rec_meta *meta = &w->view->profile->recording.meta;
    uint64_t page_bytes = meta->page_bytes > 0 ? meta->page_bytes : 4096;
    strbuf_append_text(&w->buffer, "c 0\n");
    write_start(w, pass_temporary, pass_neither);
    strbuf_printf(&w->buffer, "c %" PRIx64 "\n", summary.peak_time_ms);
    write_peak(w, allocate_group);
    strbuf_printf(&w->buffer, "R %" PRIx64 "\nc %" PRIx64 "\n", summary.peak_rss_bytes / page_bytes,
                  summary.runtime_ms);
    write_frees(w);
    write_end(w, allocate_group);
    strbuf_printf(&w->buffer, "# strings: %zx\n# ips: %x\n", string_table_count(&w->strings) - 1,
                  w->instruction_count);
    flush_buffer(w, 0);
    return ERR_OK;
}

static enum err write_heaptrack(const struct export_view *view, FILE *out)
{
    CLEANUP(writer_release)
    struct heaptrack_writer w = {.view = view, .peaking = SIZE_MAX};
    TRY(packed_stream_init(&w.packed, view->packing, out));
    write_head(&w);
    TRY(write_traces(&w));
    TRY(decide_fates(&w));
    write_numbers(&w);
    TRY(write_events(&w));
    return packed_stream_finish(&w.packed);
}

const struct exporter exporter_heaptrack = {
    .name = "heaptrack",
    .file_suffix = ".heaptrack.gz",
    .goes_by_name = true,
    .help = "for heaptrack_print and heaptrack_gui: all their costs, by stack",
    .is_binary = true,
    .needs = 1U << COST_ALLOCATIONS | 1U << COST_ALLOCATED_BYTES | 1U << COST_PEAK_BYTES |
             1U << COST_PEAK_BLOCKS | 1U << COST_LEAKED_BYTES | 1U << COST_LEAKED_ALLOCATIONS,
    .write = write_heaptrack,
};
