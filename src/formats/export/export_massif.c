// SPDX-License-Identifier: MIT
// export_massif: the text that ms_print and massif-visualizer read.
//
// It has a snapshot for the end of each time slice, and one at the peak and one at the end, both
// with a tree of callers. The live blocks of an ended process are in no later snapshot.
//
//   n2: 4096 (heap allocation functions) ...
//    n1: 3000 0x4F2: grow (vec.h:31)
//     n0: 3000 0x61A: main (app.c:9)
//    n0: 1096 in 7 places, all below massif's threshold (1.00%)
//
// The child with the most bytes is first; children below the threshold share one line. The number
// after n is the number of lines one level deeper, which readers rely on. A # would begin a comment
// and becomes an @. The exporter walks trees with its own stack, because they are as deep as call
// stacks.
#include <inttypes.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/codec/clean_text.h"
#include "formats/export/estimates_note.h"
#include "formats/export/exporter.h"
#include "profile/calls/bottom_up_tree.h"
#include "profile/time/cut_timeline.h"

enum {
    THRESHOLD_DIVISOR = 100, // nodes with at least 1 % have a line
};

static const struct clean_rule rule = {.reserved = '#', .replacement = '@'};

// A printed node whose children are not all printed.
struct level {
    size_t first; // its first child above the threshold, in massif.children
    size_t end;
    size_t next; // next child to print; at `end` the line for the rest follows, if there is one
    uint64_t rest_bytes;
    uint64_t rest_places;
};

DEFINE_VEC(level_vec, struct level);

struct massif {
    const struct profile *profile; // borrowed
    const struct call_tree *tree;  // borrowed; bottom-up
    enum cost cost;
    uint64_t threshold_bytes;
    FILE *out;               // borrowed
    struct u32_vec children; // owned; nodes, level after level
    struct level_vec levels; // owned; from the root to the current node
    struct strbuf line;      // owned
};

static void massif_release(struct massif *m)
{
    u32_vec_release(&m->children);
    level_vec_release(&m->levels);
    strbuf_release(&m->line);
}

static uint64_t bytes_of(const struct massif *m, uint32_t node)
{
    return costs_get(tree_costs_total(&m->tree->costs, node), m->cost);
}

static int by_bytes(const void *left, const void *right, void *context)
{
    const struct massif *m = (const struct massif *)context;
    uint32_t one = *(const uint32_t *)left;
    uint32_t other = *(const uint32_t *)right;
    return order_u64(bytes_of(m, other), bytes_of(m, one)) ?: order_u64(one, other);
}

// Enter a node: collect its children. Return the number of their lines.
static size_t enter_node(struct massif *m, uint32_t node)
{
    struct level level = {.first = m->children.len, .next = m->children.len};
    uint32_t child = m->tree->nodes.items[node].first_child;
    for (; child != REC_NONE; child = m->tree->nodes.items[child].next_sibling) {
        uint64_t bytes = bytes_of(m, child);
        if (bytes > 0 && bytes >= m->threshold_bytes) {
            u32_vec_add(&m->children, child);
        } else if (bytes > 0) {
            level.rest_bytes += bytes;
            level.rest_places++;
        }
    }
    level.end = m->children.len;
    if (level.end > level.first) {
        qsort_r(m->children.items + level.first, level.end - level.first, sizeof(uint32_t),
                by_bytes, m);
    }
    level_vec_add(&m->levels, level);
    return level.end - level.first + (level.rest_places > 0);
}

// Print m->line, which holds the text after the figures.
static void print_line(struct massif *m, size_t depth, size_t lines, uint64_t bytes)
{
    (void)fprintf(m->out, "%*sn%zu: %" PRIu64 " %s\n", (int)depth, "", lines, bytes,
                  strbuf_text(&m->line));
    strbuf_clear(&m->line);
}

// Leave the innermost level after printing all its children.
static void leave_node(struct massif *m)
{
    struct level level = m->levels.items[m->levels.len - 1];
    if (level.rest_places > 0) {
        strbuf_printf(&m->line, "in %" PRIu64 " place%s below massif's threshold (1.00%%)",
                      level.rest_places, level.rest_places == 1 ? "," : "s, all");
        print_line(m, m->levels.len, 0, level.rest_bytes);
    }
    m->children.len = level.first;
    m->levels.len--;
}

static void print_tree(struct massif *m)
{
    m->threshold_bytes = bytes_of(m, 0) / THRESHOLD_DIVISOR;
    strbuf_append_text(&m->line, "(heap allocation functions)");
    const size_t lines = enter_node(m, 0);
    print_line(m, 0, lines, bytes_of(m, 0));
    while (m->levels.len > 0) {
        struct level *level = &m->levels.items[m->levels.len - 1];
        if (level->next == level->end) {
            leave_node(m);
            continue;
        }
        uint32_t node = m->children.items[level->next++];
        size_t depth = m->levels.len;
        const size_t own_lines = enter_node(m, node); // may move the levels
        clean_append_place(&m->line, m->profile, m->tree->nodes.items[node].location, rule);
        print_line(m, depth, own_lines, bytes_of(m, node));
    }
}

static void print_head(struct massif *m, size_t number, uint64_t time_ms, uint64_t bytes)
{
    (void)fprintf(m->out,
                  "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
                  "\nmem_heap_extra_B=0\nmem_stacks_B=0\n",
                  number, time_ms, bytes);
}

static void
print_detailed(struct massif *m, size_t number, uint64_t time_ms, enum cost cost, const char *kind)
{
    m->cost = cost;
    print_head(m, number, time_ms, bytes_of(m, 0));
    (void)fprintf(m->out, "heap_tree=%s\n", kind);
    print_tree(m);
}

static void print_plain(struct massif *m, size_t number, uint64_t time_ms, uint64_t bytes)
{
    print_head(m, number, time_ms, bytes);
    (void)fprintf(m->out, "heap_tree=empty\n");
}

// The times of the peak and of the end, of a part of the run.
struct moments {
    uint64_t peak_ms;
    uint64_t end_ms;
};

static struct moments moments_of(const struct export_view *view)
{
    const struct recording *recording = &view->profile->recording;
    uint64_t peak_ms = recording->totals.peak_time_ms;
    uint64_t end_ms = max_u64(recording->meta.runtime_ms, peak_ms);
    if (!view->filter->has_range) {
        return (struct moments){.peak_ms = peak_ms, .end_ms = end_ms};
    }
    return (struct moments){.peak_ms = time_range_peak_ms(recording, view->selection.range),
                            .end_ms = time_range_end_ms(recording, view->selection.range)};
}

// The trees of callers of the two snapshots with one.
struct trees {
    struct bottom_up_tree peak;
    struct bottom_up_tree end;
};

static void trees_release(struct trees *trees)
{
    bottom_up_tree_release(&trees->peak);
    bottom_up_tree_release(&trees->end);
}

// Nodes below the builder's bounds are far below massif's threshold.
static MUST_USE enum err build_tree(const struct selection *selection,
                                    enum call_tree_frames frames,
                                    struct bottom_up_tree *out)
{
    return bottom_up_tree_build(selection, CALL_TREE_BY_LOCATION, call_tree_folds_of(frames), false,
                                &bottom_up_default_bounds, out);
}

static void print_snapshots(struct massif *m,
                            const struct trees *trees,
                            const struct cut_timeline *timeline,
                            struct moments moments)
{
    size_t number = 0;
    bool is_peak_printed = false;
    m->tree = &trees->peak.tree;
    print_plain(m, number++, timeline->first * timeline->slice_ms, timeline->before_bytes);
    for (size_t i = timeline->first; i < timeline->end; i++) {
        uint64_t time_ms = (i + 1) * timeline->slice_ms;
        if (!is_peak_printed && time_ms > moments.peak_ms) {
            print_detailed(m, number++, moments.peak_ms, COST_PEAK_BYTES, "peak");
            is_peak_printed = true;
        }
        if (time_ms < moments.end_ms) {
            print_plain(m, number++, time_ms, timeline->points.items[i].live_bytes);
        }
    }
    if (!is_peak_printed) {
        print_detailed(m, number++, moments.peak_ms, COST_PEAK_BYTES, "peak");
    }
    m->tree = &trees->end.tree;
    print_detailed(m, number, moments.end_ms, COST_LEAKED_BYTES, "detailed");
}

// Append what is an estimate, and the errors of the two snapshots with trees: a snapshot has no
// room for its own.
static void append_estimates(const struct export_view *view, struct strbuf *out)
{
    static const struct estimated_total totals[] = {{"peak", COST_PEAK_BYTES},
                                                    {"end", COST_LEAKED_BYTES}};
    if (costs_any(&view->selection.estimated)) {
        strbuf_append_text(out, "; in part an estimate");
    }
    estimates_note_append(view, tree_costs_total(&view->tree.costs, 0), totals, ARRAY_LEN(totals),
                          "; ", "", out);
}

static enum err write_massif(const struct export_view *view, FILE *out)
{
    const struct profile *profile = view->profile;
    CLEANUP(trees_release) struct trees trees = {0};
    CLEANUP(selection_release) struct selection at_end = {0};
    TRY(selection_at_end(&view->selection, &at_end));
    TRY(build_tree(&view->selection, view->frames, &trees.peak));
    TRY(build_tree(&at_end, view->frames, &trees.end));
    CLEANUP(cut_timeline_release) struct cut_timeline timeline = {0};
    TRY(cut_timeline_build(&view->selection, &timeline));
    CLEANUP(massif_release)
    struct massif m = {.profile = profile, .out = out};
    strbuf_append_text(&m.line, "desc: recorded by cairn");
    append_estimates(view, &m.line);
    strbuf_append_text(&m.line, "\ncmd: ");
    clean_append(&m.line, profile_string(profile, profile->recording.meta.command_line), rule);
    strbuf_append_text(&m.line, "\ntime_unit: ms\n");
    (void)fputs(strbuf_text(&m.line), out);
    strbuf_clear(&m.line);
    print_snapshots(&m, &trees, &timeline, moments_of(view));
    return ERR_OK;
}

const struct exporter exporter_massif = {
    .name = "massif",
    .file_suffix = ".massif",
    .help = "for ms_print and massif-visualizer: live bytes over time, trees at peak and end",
    .uses = EXPORT_USES_SERIES | EXPORT_FOLDS,
    .needs = 1U << COST_PEAK_BYTES | 1U << COST_LEAKED_BYTES,
    .write = write_massif,
};
