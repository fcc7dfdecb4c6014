// SPDX-License-Identifier: MIT
// cmd_dump: `cairn dump FILE`: prints the chunks of a recording, or one of its tables, as text, or
// its event log: an event a line, or in JSON an object a line.
//
// The log names rows and threads by number; the profile of the same file resolves them. The log of
// a killed run has no profile, so only the numbers are printed.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"
#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/text/screen_text.h"
#include "formats/import/input_file.h"
#include "host/text/format.h"
#include "host/text/json_writer.h"
#include "host/text/visible_text.h"
#include "profile/accuracy/sampling.h"
#include "profile/model/profile.h"
#include "recording/format/schema.h"
#include "recording/read/event_reader.h"
#include "recording/read/recording_dump.h"
#include "recording/read/recording_reader.h"

struct dump_fields {
    const char *table;
    bool use_events;
    bool use_json;
};

// clang-format off
static const char *const table_choices[] = {
    "meta", "totals", "counters", "strings", "processes", "threads", "modules", "slices", "frames",
    "nodes", "rows", "symbols", "rss_samples", "cells", "cohorts", "size_buckets",
    "lifetime_buckets", "mappings", "memory_snapshots", "parts", "survivors", "marks", "unrecorded",
    "blocks", "adhoc", "reallocs", "hooks", NULL};

static const struct option_spec specs[] = {
    OPTION('t', "table", CHOICE, "NAME", offsetof(struct dump_fields, table),
           "print the entries of one table, one per line: meta, totals, counters, strings, "
           "processes, threads, modules, slices, frames, nodes, rows, symbols, rss_samples, cells, "
           "cohorts, size_buckets, lifetime_buckets, mappings, memory_snapshots, parts, survivors, "
           "marks, unrecorded, blocks, adhoc, reallocs or hooks", .choices = table_choices),
    OPTION(0, "events", FLAG, NULL, offsetof(struct dump_fields, use_events),
           "print the event log, one event per line (requires record --events)"),
    OPTION(0, "json", FLAG, NULL, offsetof(struct dump_fields, use_json),
           "with --events: one JSON object per line"),
};
// clang-format on

static bool print_chunk(void *context, const struct dumped_chunk *chunk)
{
    (void)context;
    char entries[64] = "";
    if (chunk->count > 0) {
        (void)snprintf(entries, sizeof(entries), "%" PRIu64 "..%" PRIu64, chunk->first,
                       chunk->first + chunk->count - 1);
    }
    (void)printf("%12" PRIu64 "  %s  %10" PRIu32 "  %6" PRIu32 "  %10" PRIu64 "  %10" PRIu64
                 "  %s%s%s%s%s\n",
                 chunk->offset, chunk->type, chunk->head.generation, chunk->head.part,
                 chunk->head.stored_bytes, chunk->head.raw_bytes, chunk->table,
                 chunk->count > 0 ? " " : "", entries, chunk->problem[0] != '\0' ? "  !! " : "",
                 chunk->problem);
    return ferror(stdout) == 0;
}

static MUST_USE enum err dump_chunks(const char *path, struct err_info *info)
{
    struct dump_summary summary;
    const struct importer *importer;
    TRY(input_find_importer(path, &importer, info));
    if (importer != NULL) {
        return err_set(info, ERR_UNSUPPORTED,
                       "'%s' is a file of %s, which has no chunks; use --table", path,
                       importer->name);
    }
    (void)puts("      offset  type  generation    part      stored         raw  what");
    const enum err problem = recording_dump(path, print_chunk, NULL, &summary, info);
    if (problem == ERR_CANCELLED) { // the reader of the output has closed it
        return ERR_OK;
    }
    TRY(problem);
    (void)printf("format %u.%u, %s, %s, %s%s\n", (unsigned)summary.major, (unsigned)summary.minor,
                 format_things(summary.file_bytes, "byte", "bytes").text,
                 format_things(summary.chunk_count, "chunk", "chunks").text,
                 summary.has_footer ? "finished" : "without an end (being written, or cut)",
                 summary.is_header_damaged ? ", header damaged" : "");
    if (summary.unreadable_bytes > 0) {
        (void)printf("%s from offset %" PRIu64 " %s not in a complete chunk\n",
                     format_things(summary.unreadable_bytes, "byte", "bytes").text,
                     summary.unreadable_offset, summary.unreadable_bytes == 1 ? "is" : "are");
    }
    return ERR_OK;
}

// Print text as the field of a line, with escapes for all that ends fields and lines, that a
// terminal would obey, or that is not UTF-8.
static void print_text(const char *text)
{
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    for (const char *at = text; *at != '\0';) {
        const size_t plain = strcspn(at, "\\");
        CLEANUP(strbuf_release) struct strbuf part = {0};
        strbuf_append(&part, at, plain);
        visible_append(&safe, strbuf_text(&part));
        at += plain;
        if (*at == '\\') {
            visible_append_escape(&safe, '\\');
            at++;
        }
    }
    (void)fputs(strbuf_text(&safe), stdout); // an error of the stream is found at the end
}

static void
print_field(const struct recording *r, const struct rec_column *column, const char *entry)
{
    uint64_t value = rec_column_get(column, entry);
    if (column->kind == REC_COLUMN_STRING) {
        print_text(rec_string_get(r, (rec_string)value));
    } else if (column->width_bytes == sizeof(uint32_t) && value == UINT32_MAX) {
        (void)putchar('-'); // no value
    } else {
        (void)printf("%" PRIu64, value);
    }
}

static void print_strings(const struct recording *r)
{
    (void)puts("string");
    for (uint32_t i = 0; i < r->strings.count && ferror(stdout) == 0; i++) {
        print_text(rec_string_get(r, i));
        (void)putchar('\n');
    }
}

static void print_table(const struct recording *r, const struct rec_table *table)
{
    const char *entries = rec_table_items(table, r);
    for (size_t i = 0; i < table->column_count; i++) {
        const char *dot = strchr(table->columns[i].name, '.');
        (void)printf("%s%s", i > 0 ? "\t" : "", dot != NULL ? dot + 1 : table->columns[i].name);
    }
    (void)putchar('\n');
    for (size_t i = 0; i < rec_table_count(table, r) && ferror(stdout) == 0; i++) {
        for (size_t j = 0; j < table->column_count; j++) {
            (void)fputs(j > 0 ? "\t" : "", stdout);
            print_field(r, &table->columns[j], entries + i * table->entry_bytes);
        }
        (void)putchar('\n');
    }
}

static MUST_USE enum err dump_table(const char *path, const char *name, struct err_info *info)
{
    CLEANUP(recording_release) struct recording recording = {0};
    struct recording_open_result result;
    TRY(input_open_recording(path, NULL, &recording, &result, NULL, info));
    if (result.missing[0] != '\0') {
        (void)fprintf(stderr, "cairn: %s\n", result.missing); // a remark, not an error
    }
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        if (strcmp(rec_tables[i].name, name) == 0 && rec_tables[i].columns != NULL) {
            print_table(&recording, &rec_tables[i]);
        } else if (strcmp(rec_tables[i].name, name) == 0) {
            print_strings(&recording);
        }
    }
    return ERR_OK;
}

static const char *const event_kinds[] = {
    [REC_EVENT_ALLOCATION] = "allocation",   [REC_EVENT_FREE] = "free",
    [REC_EVENT_FREE_LATEST] = "free_latest", [REC_EVENT_TEMPORARY] = "temporary",
    [REC_EVENT_UNKNOWN_FREE] = "unknown",    [REC_EVENT_PROCESS_END] = "process_end",
};

// Names and sampling of the events. `profile` may be NULL.
struct event_place {
    uint32_t pid;
    uint32_t thread_id;
    uint32_t node;
    const char *function;
};

static struct event_place event_place_of(const struct profile *profile,
                                         const struct rec_event *event)
{
    struct event_place place = {.node = REC_NONE, .function = ""};
    if (profile == NULL) {
        return place;
    }
    const struct recording *recording = &profile->recording;
    if (event->process < recording->process_count) {
        place.pid = recording->processes[event->process].pid;
    }
    if (event->thread < recording->thread_count) {
        place.thread_id = recording->threads[event->thread].thread_id;
    }
    if (event->row < recording->row_count) {
        place.node = recording->rows[event->row].node;
        const uint32_t location = profile_call_site(profile, place.node).location;
        place.function = location != REC_NONE ? profile_location_function(profile, location) : "";
    }
    return place;
}

static const char *kind_name(uint32_t kind)
{
    return kind < ARRAY_LEN(event_kinds) && event_kinds[kind] != NULL ? event_kinds[kind] : "?";
}

static void print_event(const struct profile *profile, const struct rec_event *event)
{
    const struct event_place place = event_place_of(profile, event);
    CLEANUP(strbuf_release) struct strbuf function = {0};
    screen_append(&function, place.function);
    if (event->others != 0) {
        strbuf_printf(&function, "  [one of %" PRIu64 "]", (uint64_t)event->others + 1);
    }
    (void)printf("%10" PRIu64 "  %-11s  %7" PRIu32 "  %7" PRIu32 "  %#14" PRIx64 "  %10" PRIu64
                 "  %s\n",
                 event->time_ms, kind_name(event->kind), place.pid, place.thread_id, event->address,
                 event->size_bytes, strbuf_text(&function)); // errors are found at the end
}

static MUST_USE enum err print_event_json(const struct profile *profile,
                                          const struct rec_event *event)
{
    const struct event_place place = event_place_of(profile, event);
    struct json_writer w;
    json_to_stream(&w, stdout, JSON_COMPACT);
    json_key_u64(&w, "time_ms", event->time_ms);
    json_key_string(&w, "kind", kind_name(event->kind));
    json_key_u64(&w, "process", event->process);
    json_key_u64(&w, "pid", place.pid);
    json_key_known_u64(&w, "thread", event->thread, event->thread != REC_NONE);
    json_key_u64(&w, "thread_id", place.thread_id);
    json_key_u64(&w, "address", event->address);
    json_key_u64(&w, "size_bytes", event->size_bytes);
    json_key_u64(&w, "weight", (uint64_t)event->others + 1);
    json_key_known_u64(&w, "row", event->row, event->row != REC_NONE);
    json_key_known_u64(&w, "stack", place.node, place.node != REC_NONE);
    json_key_string(&w, "function", place.function);
    TRY(json_finish(&w));
    (void)putchar('\n'); // an error of the stream is found at the end
    return ERR_OK;
}

static void
print_events(const struct profile *profile, const struct rec_event_vec *events, bool use_json)
{
    for (size_t i = 0; i < events->len && ferror(stdout) == 0; i++) {
        if (!use_json) {
            print_event(profile, &events->items[i]);
        } else if (print_event_json(profile, &events->items[i]) != ERR_OK) {
            return; // the stream has the error
        }
    }
}

// Explain the weight of events of a sampled recording. The sentence goes to stderr because stdout
// is for programs.
static void print_sampling(const struct profile *profile)
{
    if (profile == NULL || !sampling_of(&profile->recording).is_sampled) {
        return;
    }
    const struct sampling sampling = sampling_of(&profile->recording);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    sampling_append(&sampling, &text);
    (void)fprintf(stderr,
                  "cairn: %s; an allocation counts as many times as its weight, and frees of "
                  "unsampled blocks have no block\n",
                  strbuf_text(&text));
}

// Print the event log to stdout.
static MUST_USE enum err dump_events(const char *path, bool use_json, struct err_info *info)
{
    struct err_info no_profile = {0};
    CLEANUP(event_reader_close) struct event_reader reader = EVENT_READER_INIT;
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rec_event_vec_release) struct rec_event_vec events = {0};
    TRY(event_reader_open(path, &reader, info));
    (void)!input_open_profile(path, NULL, NULL, &profile, &no_profile); // else print numbers only
    enum err problem = event_reader_next(&reader, &events, info);
    if (problem == ERR_OK && events.len == 0) {
        return err_set(info, ERR_NOT_FOUND,
                       "'%s' has no event log; record with 'cairn record --events'", path);
    }
    print_sampling(profile);
    if (!use_json) {
        (void)printf("%10s  %-11s  %7s  %7s  %14s  %10s  %s\n", "ms", "event", "process", "thread",
                     "address", "bytes", "from");
    }
    while (problem == ERR_OK && events.len > 0 && ferror(stdout) == 0) {
        print_events(profile, &events, use_json);
        problem = event_reader_next(&reader, &events, info);
    }
    (void)fflush(stdout); // before the problem; errors are found at the end
    return problem;
}

static int run(void *context, int count, char **operands)
{
    const struct dump_fields *fields = context;
    struct err_info info = {0};
    (void)count; // one FILE
    const enum err problem = fields->use_events ? dump_events(operands[0], fields->use_json, &info)
                             : fields->table != NULL ? dump_table(operands[0], fields->table, &info)
                                                     : dump_chunks(operands[0], &info);
    return command_end(problem, &info, STATUS_OK);
}

const struct command command_dump = {
    .name = "dump",
    .summary = "print the raw contents of a recording",
    .synopsis = "[options] FILE",
    .description =
        "Print the chunks of FILE: offset, snapshot, stored and unpacked length, number\n"
        "of entries. Damaged chunks are marked with !!.\n\n"
        "With --table, print the entries of one table of the last complete snapshot, with\n"
        "fields separated by tabs (docs/format/recording.md).\n",
    .examples = "cairn dump run.cairn\n"
                "cairn dump --table processes run.cairn\n",
    .options = {.specs = specs, .count = ARRAY_LEN(specs), .follows_operands = true},
    .takes_one_file = true,
    .fields_bytes = sizeof(struct dump_fields),
    .run = run,
};
