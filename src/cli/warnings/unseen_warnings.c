// SPDX-License-Identifier: MIT
// unseen_warnings: warns about what a recording does not show (profile/tables/unseen.h).
#include "cli/warnings/warnings.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/unseen.h"

enum {
    PROGRAM_LINES = 12,
    PROCESS_LINES = 8,
};

static void write_program(const struct profile *profile,
                          const struct rec_unrecorded *entry,
                          const char *prefix,
                          FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf why = {0};
    screen_append(&name, profile_string(profile, entry->program));
    screen_append(&why, profile_string(profile, entry->text));
    // Output errors are found when the stream is closed.
    (void)fprintf(out, "%snot recorded: %s", prefix,
                  name.len > 0 ? strbuf_text(&name) : "other programs");
    if (entry->execs != 1) {
        (void)fprintf(out, ", %s times", format_count(entry->execs).text);
    }
    (void)fprintf(out, ": %s", strbuf_text(&why));
    if (entry->descendants > 0) {
        (void)fprintf(out, "; at least %s from there",
                      format_things(entry->descendants, "process came", "processes came").text);
    }
    (void)fprintf(out, "\n");
}

static void write_unrecorded(const struct profile *profile, const char *prefix, FILE *out)
{
    const struct recording *recording = &profile->recording;
    uint64_t left = unseen_execs(recording);
    size_t shown = 0;
    for (; shown < recording->unrecorded_count && shown < PROGRAM_LINES; shown++) {
        write_program(profile, &recording->unrecorded[shown], prefix, out);
        left -= recording->unrecorded[shown].execs;
    }
    if (left > 0) {
        (void)fprintf(out, "%snot recorded: %s more; 'cairn report --json' names them\n", prefix,
                      format_count(left).text);
    }
}

// Append "; most by alloc in bun", if known.
static void append_mapper(const struct profile *profile, uint32_t node, struct strbuf *out)
{
    CLEANUP(u32_vec_release) struct u32_vec locations = {0};
    CLEANUP(u32_vec_release) struct u32_vec inlined = {0};
    if (rss_breakdown_stack(profile, node, &locations, &inlined) == ERR_OK && locations.len > 0) {
        strbuf_append_text(out, "; most was mapped by ");
        screen_append(out, profile_location_function(profile, locations.items[0]));
    }
}

// Write the figures of a process that mapped most of its memory itself.
static void write_memory(const struct unseen *unseen, FILE *out)
{
    (void)fprintf(out, "%s of %s; its heap had %s", format_bytes(unseen->mapped_bytes).text,
                  format_bytes(unseen->anonymous_bytes).text,
                  format_bytes(unseen->heap_bytes).text);
}

// Write one line for a process and `others` like it.
static void write_process(const struct profile *profile,
                          const struct unseen *unseen,
                          size_t others,
                          const char *prefix,
                          FILE *out)
{
    const struct rec_process *process = &profile->recording.processes[unseen->process];
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf why = {0};
    CLEANUP(strbuf_release) struct strbuf mapper = {0};
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    screen_append(&name, profile_string(profile, process->executable));
    unseen_explain(unseen, &why);
    screen_append(&safe, strbuf_text(&why));
    (void)fprintf(out, "%s%s (pid %" PRIu32, prefix, strbuf_text(&name), process->pid);
    if (others > 0) {
        (void)fprintf(out, " and %s more", format_count(others).text);
    }
    (void)fprintf(out, ") %s", strbuf_text(&safe));
    append_mapper(profile, unseen->node, &mapper);
    if (unseen->kind == UNSEEN_MAPPED) {
        (void)fprintf(out, " (");
        write_memory(unseen, out);
        (void)fprintf(out, "): what an allocator of its own gives out of that was not seen%s",
                      strbuf_text(&mapper));
    } else if (unseen->kind == UNSEEN_RUNTIME && unseen->is_mapped) {
        (void)fprintf(out, "; it mapped most of its anonymous memory itself (");
        write_memory(unseen, out);
        (void)fprintf(out, ")%s", strbuf_text(&mapper));
    }
    (void)fprintf(out, "\n");
}

// Whether one line stands for both: a server has many processes of one program.
static bool are_alike(const struct profile *profile, const struct unseen *a, const struct unseen *b)
{
    const struct rec_process *processes = profile->recording.processes;
    return a->kind == UNSEEN_RUNTIME && b->kind == UNSEEN_RUNTIME &&
           processes[a->process].executable == processes[b->process].executable &&
           strcmp(a->runtime, b->runtime) == 0;
}

// Remove the entries that are like the first one, which becomes the one that mapped most. Return
// how many they are.
static size_t take_alike(const struct profile *profile, struct unseen_vec *list, size_t first)
{
    size_t kept = first + 1;
    for (size_t i = kept; i < list->len; i++) {
        struct unseen *here = list->items + i;
        if (!are_alike(profile, list->items + first, here)) {
            list->items[kept++] = *here;
        } else if (here->mapped_bytes > list->items[first].mapped_bytes) {
            list->items[first] = *here;
        }
    }
    const size_t others = list->len - kept;
    list->len = kept;
    return others;
}

void warnings_write_unseen(const struct profile *profile, const char *prefix, FILE *out)
{
    CLEANUP(unseen_vec_release) struct unseen_vec list = {0};
    write_unrecorded(profile, prefix, out);
    if (unseen_collect(profile, &list) != ERR_OK) {
        return; // the caller reports the lack of memory
    }
    for (size_t i = 0; i < list.len && i < PROCESS_LINES; i++) {
        const size_t others = take_alike(profile, &list, i);
        write_process(profile, &list.items[i], others, prefix, out);
    }
    if (list.len > PROCESS_LINES) {
        (void)fprintf(out, "%s%s not seen\n", prefix,
                      format_things(list.len - PROCESS_LINES, "more process has a heap that was",
                                    "more processes have heaps that were")
                          .text);
    }
}
