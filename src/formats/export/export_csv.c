// SPDX-License-Identifier: MIT
// export_csv: a table of stacks for spreadsheets and scripts, in the form of RFC 4180.
//
// A sampled recording has a column for the error of each cost after the costs: errors_peak_bytes.
//
//   function,file,line,module,peak_bytes,...,stack,events,weight
//   grow,/src/vec.h,31,/opt/bin/app,4096,...,main;load;grow,,
//   [event sent],,0,[event sent],,...,main;send;[event sent],3,1536
//
// One line for each stack over all threads: its innermost location, all costs under the names of
// their columns (cost.h; empty if unknown), and its functions, outermost first. After them follows
// one line for each name and stack of the program's own events (cairn_event). It has a number of
// events and their weight, and no costs, so no column mixes both. A semicolon in a function's name
// becomes a colon in `stack`. Control characters become spaces, so each line of the file is a row.
// Text that a spreadsheet could take for a formula (it begins with = + - or @) gets an apostrophe
// before it.
// Context: H.
#include <inttypes.h>

#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "formats/export/exporter.h"
#include "profile/accuracy/sampling.h"
#include "profile/tables/adhoc.h"
#include "views_json/layout/csv_cell.h"

static const struct clean_rule stack_rule = {.reserved = ';', .replacement = ':'};

static void write_text(FILE *out, const struct strbuf *text)
{
    csv_write_text(out, strbuf_text(text));
}

static void write_cell(FILE *out, struct strbuf *scratch, const char *text)
{
    strbuf_clear(scratch);
    clean_append(scratch, text, (struct clean_rule){0});
    write_text(out, scratch);
    (void)fputc(',', out);
}

static void
write_place(const struct profile *profile, uint32_t location, struct strbuf *scratch, FILE *out)
{
    bool is_known = location != REC_NONE;
    strbuf_clear(scratch);
    clean_append_function(scratch, profile, location, (struct clean_rule){0});
    write_text(out, scratch);
    (void)fputc(',', out);
    write_cell(out, scratch, is_known ? profile_location_file(profile, location) : "");
    (void)fprintf(out, "%" PRIu32 ",",
                  is_known ? profile_location_get(profile, location)->line : 0);
    write_cell(out, scratch, is_known ? profile_location_module(profile, location) : "");
}

// Write the functions of a stack, outermost first. `locations` are innermost first.
static void write_stack(const struct profile *profile,
                        const uint32_t *locations,
                        size_t count,
                        struct strbuf *scratch,
                        FILE *out)
{
    strbuf_clear(scratch);
    for (size_t i = count; i-- > 0;) {
        clean_append_function(scratch, profile, locations[i], stack_rule);
        strbuf_append_text(scratch, i > 0 ? ";" : "");
    }
    write_text(out, scratch);
}

// Write a cell for each cost, empty if the selection does not know it.
static void write_costs(const struct selection *selection, const struct costs *costs, FILE *out)
{
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if (selection_knows(selection, (enum cost)cost)) {
            (void)fprintf(out, "%" PRIu64, costs_get(costs, (enum cost)cost));
        }
        (void)fputc(',', out);
    }
}

static void
write_row(const struct export_view *view, uint32_t node, struct strbuf *scratch, FILE *out)
{
    const struct call_tree *tree = &view->tree;
    CLEANUP(u32_vec_release) struct u32_vec path = {0};
    write_place(view->profile, tree->nodes.items[node].location, scratch, out);
    const struct sampling sampling = sampling_of(&view->profile->recording);
    write_costs(&view->selection, tree_costs_self(&tree->costs, node), out);
    if (sampling_has_errors(&view->profile->recording)) {
        const struct costs errors = sampling_errors(&sampling, tree_costs_self(&tree->costs, node));
        write_costs(&view->selection, &errors, out);
    }
    for (uint32_t at = node; at != 0; at = tree->nodes.items[at].parent) {
        u32_vec_add(&path, tree->nodes.items[at].location);
    }
    write_stack(view->profile, path.items, path.len, scratch, out);
    (void)fputs(",,\r\n", out);
}

static MUST_USE enum err
write_adhoc(const struct profile *profile, struct strbuf *scratch, FILE *out)
{
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    TRY(adhoc_collect(profile, ADHOC_BY_STACK, &list));
    for (size_t i = 0; i < list.events.len; i++) {
        const struct adhoc_event *event = &list.events.items[i];
        const uint32_t *locations = list.locations.items + event->first;
        write_place(profile, event->count > 0 ? locations[0] : REC_NONE, scratch, out);
        for (int cost = 0; cost < COST_COUNT * (sampling_has_errors(&profile->recording) ? 2 : 1);
             cost++) {
            (void)fputc(',', out);
        }
        write_stack(profile, locations, event->count, scratch, out);
        (void)fprintf(out, ",%" PRIu64 ",%" PRIu64 "\r\n", event->events, event->weight);
    }
    return ERR_OK;
}

static enum err write_csv(const struct export_view *view, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf scratch = {0};
    (void)fputs("function,file,line,module,", out);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        (void)fprintf(out, "%s,", cost_get_info((enum cost)cost)->key);
    }
    for (int cost = 0; cost < COST_COUNT && sampling_has_errors(&view->profile->recording);
         cost++) {
        (void)fprintf(out, "errors_%s,", cost_get_info((enum cost)cost)->key);
    }
    (void)fputs("stack,events,weight\r\n", out);
    for (uint32_t node = 0; node < view->tree.nodes.len; node++) {
        if (costs_any(tree_costs_self(&view->tree.costs, node))) {
            write_row(view, node, &scratch, out);
        }
    }
    return write_adhoc(view->profile, &scratch, out);
}

const struct exporter exporter_csv = {
    .name = "csv",
    .file_suffix = ".csv",
    .help = "a table for spreadsheets and scripts: all costs of each stack",
    .write = write_csv,
};
