// SPDX-License-Identifier: MIT
// export_folded: one line for each stack, for flamegraph.pl and similar tools.
//
//   main;load;grow 4096
//
// Outermost function first, then one cost. A semicolon in a name becomes a colon. Stacks that
// differ only in lines have separate lines; readers add them up.
#include <inttypes.h>

#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "formats/export/exporter.h"

static const struct clean_rule rule = {.reserved = ';', .replacement = ':'};

// Replace `path` by the nodes from the root's child to `node`.
static MUST_USE enum err path_to(const struct call_tree *tree, uint32_t node, struct u32_vec *path)
{
    uint32_t depth = tree->nodes.items[node].depth;
    TRY(u32_vec_resize(path, depth));
    for (uint32_t at = node; depth > 0; at = tree->nodes.items[at].parent) {
        path->items[--depth] = at;
    }
    return ERR_OK;
}

static enum err write_folded(const struct export_view *view, FILE *out)
{
    const struct call_tree *tree = &view->tree;
    enum cost cost = view->usual_cost;
    CLEANUP(u32_vec_release) struct u32_vec path = {0};
    CLEANUP(strbuf_release) struct strbuf line = {0};
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        uint64_t value = costs_get(tree_costs_self(&tree->costs, node), cost);
        if (value == 0) {
            continue;
        }
        TRY(path_to(tree, node, &path));
        strbuf_clear(&line);
        if (path.len == 0) {
            clean_append_function(&line, view->profile, REC_NONE, rule);
        }
        for (size_t i = 0; i < path.len; i++) {
            strbuf_append_text(&line, i > 0 ? ";" : "");
            uint32_t location = tree->nodes.items[path.items[i]].location;
            clean_append_function(&line, view->profile, location, rule);
        }
        (void)fprintf(out, "%s %" PRIu64 "\n", strbuf_text(&line), value);
    }
    return ERR_OK;
}

const struct exporter exporter_folded = {
    .name = "folded",
    .file_suffix = ".folded",
    .help = "lines for flamegraph.pl: one cost of each stack",
    .uses = EXPORT_USES_COST | EXPORT_FOLDS,
    .write = write_folded,
};
