// SPDX-License-Identifier: MIT
// cmd_dump: `cairn dump FILE`: prints the chunks of a recording, or one of its tables, as text.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"
#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "formats/import/input_file.h"
#include "host/text/format.h"
#include "host/text/visible_text.h"
#include "recording/format/schema.h"
#include "recording/read/recording_dump.h"
#include "recording/read/recording_reader.h"

struct dump_fields {
    const char *table;
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

static int run(void *context, int count, char **operands)
{
    const struct dump_fields *fields = context;
    struct err_info info = {0};
    (void)count; // one FILE
    const enum err problem = fields->table != NULL ? dump_table(operands[0], fields->table, &info)
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
