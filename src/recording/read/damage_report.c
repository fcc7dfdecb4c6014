// SPDX-License-Identifier: MIT
#include "recording/read/damage_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/compiler.h"
#include "host/text/format.h"

enum {
    MAX_NAMED_TABLES = 4
};

// What a reader lacks without each table.
static const char *const meanings[REC_TABLE_COUNT] = {
    [REC_TABLE_META] = "what ran",
    [REC_TABLE_TOTALS] = "totals",
    [REC_TABLE_STRINGS] = "names",
    [REC_TABLE_COUNTERS] = "counts of what was lost",
    [REC_TABLE_PROCESSES] = "processes",
    [REC_TABLE_THREADS] = "threads",
    [REC_TABLE_MODULES] = "modules",
    [REC_TABLE_SLICES] = "the time line",
    [REC_TABLE_RSS_SAMPLES] = "RSS over time",
    [REC_TABLE_FRAMES] = "frames",
    [REC_TABLE_NODES] = "call stacks",
    [REC_TABLE_ROWS] = "what the call stacks did",
    [REC_TABLE_SYMBOLS] = "function names",
    [REC_TABLE_COHORTS] = "the ages of blocks",
    [REC_TABLE_CELLS] = "the history of call stacks over time",
    [REC_TABLE_SIZE_BUCKETS] = "sizes of blocks",
    [REC_TABLE_LIFETIME_BUCKETS] = "lifetimes of blocks",
    [REC_TABLE_MAPPINGS] = "mappings",
    [REC_TABLE_ADHOC] = "events of the program",
    [REC_TABLE_REALLOCS] = "reallocs that grew blocks",
    [REC_TABLE_MEMORY_SNAPSHOTS] = "what RSS consisted of",
    [REC_TABLE_PARTS] = "parts of RSS",
    [REC_TABLE_SURVIVORS] = "blocks on sparse pages",
    [REC_TABLE_MARKS] = "marks",
    [REC_TABLE_UNRECORDED] = "programs that were not recorded",
    [REC_TABLE_HOOKS] = "names of hooked functions",
    [REC_TABLE_BLOCKS] = "single blocks",
};

struct sentence {
    char *out;
    size_t len;
    size_t used;
};

static void add_words(struct sentence *s, const char *format, ...) PRINTF_LIKE(2, 3);

// Append a clause.
static void add_words(struct sentence *s, const char *format, ...)
{
    size_t left = s->len - s->used;
    int wrote = s->used > 0 ? snprintf(s->out + s->used, left, "; ") : 0;
    if (wrote < 0 || (size_t)wrote >= left) {
        return;
    }
    s->used += (size_t)wrote;
    left -= (size_t)wrote;
    va_list arguments;
    va_start(arguments, format);
    wrote = vsnprintf(s->out + s->used, left, format, arguments);
    va_end(arguments);
    if (wrote > 0) {
        s->used += (size_t)wrote < left ? (size_t)wrote : left - 1;
    }
}

static bool is_newest(const struct damage_report *s)
{
    return s->generation == s->newest_generation;
}

static bool is_damaged(const struct damage_report *s)
{
    // Bad references count as damage only if no missing chunk explains them.
    bool is_inconsistent = s->is_whole && (s->dropped > 0 || s->repaired > 0);
    bool lacks_parts = s->has_footer && !(s->is_whole && is_newest(s));
    return s->is_header_damaged || s->is_contents_damaged || s->damaged_bytes > 0 ||
           s->damaged_chunks > 0 || is_inconsistent || lacks_parts;
}

enum recording_condition damage_report_condition(const struct damage_report *s)
{
    if (is_damaged(s)) {
        return RECORDING_DAMAGED;
    }
    if (s->is_pruned) {
        return s->is_memory_limit ? RECORDING_PRUNED : RECORDING_DAMAGED;
    }
    if (s->has_footer) {
        return RECORDING_COMPLETE;
    }
    return s->is_whole && s->is_running ? RECORDING_GROWING : RECORDING_TRUNCATED;
}

static uint64_t missing_of(const struct damage_report *s, size_t table)
{
    return s->announced[table] > s->counts[table] ? s->announced[table] - s->counts[table] : 0;
}

static void say_tables(struct sentence *text, const struct damage_report *s)
{
    unsigned named = 0;
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        if (missing_of(s, i) == 0) {
            continue;
        }
        if (named == MAX_NAMED_TABLES) {
            add_words(text, "and more is missing or incomplete");
            return;
        }
        const char *what = meanings[i] != NULL ? meanings[i] : rec_tables[i].name;
        if (s->counts[i] == 0) {
            add_words(text, "missing: %s", what);
        } else {
            add_words(text, "incomplete: %s (%" PRIu64 " of %" PRIu64 ")", what, s->counts[i],
                      s->announced[i]);
        }
        named++;
    }
}

void damage_report_text(const struct damage_report *s, char *out, size_t len)
{
    struct sentence text = {.out = out, .len = len};
    out[0] = '\0';
    if (s->is_header_damaged) {
        add_words(&text, "the header is damaged");
    }
    if (s->is_contents_damaged) {
        add_words(&text, "the table of contents is damaged");
    }
    if (s->damaged_bytes > 0) {
        add_words(&text, "%s from offset %" PRIu64 " on %s unreadable",
                  format_things(s->damaged_bytes, "byte", "bytes").text, s->damaged_offset,
                  s->damaged_bytes == 1 ? "is" : "are");
    }
    if (!is_newest(s)) {
        add_words(&text, "snapshot %" PRIu32 " is incomplete, so this is snapshot %" PRIu32,
                  s->newest_generation, s->generation);
    } else if (s->is_cut) {
        add_words(&text, "the file ends too early, its last %s not a complete chunk",
                  format_things(s->cut_bytes, "byte is", "bytes are").text);
    } else if (!s->has_footer && !(s->is_whole && s->is_running)) {
        add_words(&text, "the file ends too early");
    }
    if (s->damaged_chunks > 0) {
        add_words(
            &text, "%s omitted",
            format_things(s->damaged_chunks, "damaged chunk was", "damaged chunks were").text);
    }
    if (s->is_pruned) {
        add_words(
            &text,
            "the history of stacks over time is omitted, because all tables together may take only "
            "%s of memory, %s",
            format_bytes(s->most_bytes).text,
            s->is_memory_limit ? "their share of the memory here"
                               : "as the file does not say what they need");
    }
    if (s->is_limited) {
        add_words(&text,
                  "parts are omitted that need more memory than a file of this size may use");
    }
    say_tables(&text, s);
    if (s->dropped > 0) {
        add_words(&text, "%s omitted",
                  format_things(s->dropped, "entry that refers to a missing one was",
                                "entries that refer to missing ones were")
                      .text);
    }
    if (s->repaired > 0) {
        add_words(&text, "%s repaired",
                  format_things(s->repaired, "contradiction was", "contradictions were").text);
    }
}
