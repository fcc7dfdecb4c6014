// SPDX-License-Identifier: MIT
// api_ledger: /api/v1/ledger: what the resident memory consists of.
#include <stdio.h>

#include "base/compiler.h"
#include "profile/tables/ledger.h"
#include "server/api/api.h"
#include "server/columns/code_tables.h"
#include "server/columns/columns.h"
#include "server/columns/told_stacks.h"

// What must be known for a column not to be null.
enum need {
    NEEDS_NOTHING,
    NEEDS_KINDS,
    NEEDS_FAULTS,
    NEEDS_AREAS,
    NEEDS_LIVE,       // the heap's size
    NEEDS_LIVE_KINDS, // and what is anonymous
};

struct sample_column {
    const char *key;
    size_t offset; // in struct ledger_sample
    enum need need;
};

static const struct sample_column sample_columns[] = {
    {"time_ms", offsetof(struct ledger_sample, time_ms), NEEDS_NOTHING},
    {"rss_bytes", offsetof(struct ledger_sample, rss_bytes), NEEDS_NOTHING},
    {"anonymous_bytes", offsetof(struct ledger_sample, anonymous_bytes), NEEDS_KINDS},
    {"file_bytes", offsetof(struct ledger_sample, file_bytes), NEEDS_KINDS},
    {"shmem_bytes", offsetof(struct ledger_sample, shmem_bytes), NEEDS_KINDS},
    {"swap_bytes", offsetof(struct ledger_sample, swap_bytes), NEEDS_KINDS},
    {"minor_faults", offsetof(struct ledger_sample, minor_faults), NEEDS_FAULTS},
    {"major_faults", offsetof(struct ledger_sample, major_faults), NEEDS_FAULTS},
    {"break_bytes", offsetof(struct ledger_sample, break_bytes), NEEDS_AREAS},
    {"data_bytes", offsetof(struct ledger_sample, data_bytes), NEEDS_AREAS},
    {"mapped_bytes", offsetof(struct ledger_sample, mapped_bytes), NEEDS_AREAS},
    {"live_bytes", offsetof(struct ledger_sample, live_bytes), NEEDS_LIVE},
    {"other_anonymous_bytes", offsetof(struct ledger_sample, other_anonymous_bytes),
     NEEDS_LIVE_KINDS},
};

static bool
is_known(const struct ledger_knows *knows, const struct ledger_sample *sample, enum need need)
{
    switch (need) {
    case NEEDS_NOTHING:
        return true;
    case NEEDS_KINDS:
        return knows->kinds;
    case NEEDS_FAULTS:
        return knows->faults;
    case NEEDS_AREAS:
        return knows->areas;
    case NEEDS_LIVE:
        return sample->has_live;
    case NEEDS_LIVE_KINDS:
        return sample->has_live && knows->kinds;
    }
    return false;
}

static void write_samples(const struct ledger *ledger, struct json_writer *w)
{
    const struct ledger_knows knows = ledger_knows(ledger);
    table_begin(w, "samples", ledger->samples.len);
    for (size_t c = 0; c < ARRAY_LEN(sample_columns); c++) {
        column_begin(w, sample_columns[c].key);
        for (size_t i = 0; i < ledger->samples.len; i++) {
            const struct ledger_sample *sample = &ledger->samples.items[i];
            const char *field = (const char *)sample + sample_columns[c].offset;
            if (!is_known(&knows, sample, sample_columns[c].need)) {
                json_null(w);
            } else {
                json_u64(w, *(const uint64_t *)(const void *)field);
            }
        }
        column_end(w);
    }
    table_end(w);
}

struct split_column {
    const char *key;
    size_t offset; // in struct ledger_split
};

static const struct split_column split_columns[] = {
    {"time_ms", offsetof(struct ledger_split, time_ms)},
    {"rss_bytes", offsetof(struct ledger_split, rss_bytes)},
    {"swap_bytes", offsetof(struct ledger_split, swap_bytes)},
    {"requested_bytes", offsetof(struct ledger_split, requested_bytes)},
};

static const struct {
    const char *key;
    uint32_t flag; // enum rec_look_flags
} split_flags[] = {
    {"is_peak", REC_LOOK_PEAK},
    {"is_last", REC_LOOK_LAST},
    {"was_asked", REC_LOOK_ASKED},
    {"at_exit", REC_LOOK_AT_EXIT},
    {"live_is_estimate", REC_LOOK_ESTIMATED},
};

static void
write_kind_column(const struct ledger_split_vec *splits, uint32_t kind, struct json_writer *w)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "%s_bytes", ledger_kind(kind)->key); // fits
    column_begin(w, key);
    for (size_t i = 0; i < splits->len; i++) {
        json_u64(w, splits->items[i].bytes[kind]);
    }
    column_end(w);
}

static void write_splits(const struct ledger *ledger, struct json_writer *w)
{
    const struct ledger_split_vec *splits = &ledger->splits;
    table_begin(w, "splits", splits->len);
    for (size_t c = 0; c < ARRAY_LEN(split_columns); c++) {
        column_begin(w, split_columns[c].key);
        for (size_t i = 0; i < splits->len; i++) {
            const char *field = (const char *)&splits->items[i] + split_columns[c].offset;
            json_u64(w, *(const uint64_t *)(const void *)field);
        }
        column_end(w);
    }
    column_begin(w, "processes");
    for (size_t i = 0; i < splits->len; i++) {
        json_u64(w, splits->items[i].processes);
    }
    column_end(w);
    column_begin(w, "is_of_peak");
    for (size_t i = 0; i < splits->len; i++) {
        json_bool(w, ledger_is_of_peak(ledger, &splits->items[i]));
    }
    column_end(w);
    column_begin(w, "has_mappings");
    for (size_t i = 0; i < splits->len; i++) {
        json_bool(w, splits->items[i].parts.len > 0);
    }
    column_end(w);
    for (size_t c = 0; c < ARRAY_LEN(split_flags); c++) {
        column_begin(w, split_flags[c].key);
        for (size_t i = 0; i < splits->len; i++) {
            json_bool(w, (splits->items[i].flags & split_flags[c].flag) != 0);
        }
        column_end(w);
    }
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        write_kind_column(splits, kind, w);
    }
    table_end(w);
}

static void write_kinds(struct json_writer *w)
{
    table_begin(w, "kinds", REC_PART_KINDS);
    column_begin(w, "key");
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        json_string(w, ledger_kind(kind)->key);
    }
    column_end(w);
    column_begin(w, "phrase");
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        json_string(w, ledger_kind(kind)->phrase);
    }
    column_end(w);
    table_end(w);
}

// The split whose mappings are wanted: that of `moment_ms`, else the peak's; NULL if there is none.
static MUST_USE enum err
choose_split(struct question *q, const struct ledger *ledger, const struct ledger_split **out)
{
    *out = ledger_peak(ledger);
    if (!request_has(q->request, PARAM_MOMENT_MS)) {
        return ERR_OK;
    }
    const uint64_t moment_ms = request_number(q->request, PARAM_MOMENT_MS, 0);
    for (size_t i = 0; i < ledger->splits.len; i++) {
        if (ledger->splits.items[i].time_ms == moment_ms && ledger->splits.items[i].parts.len > 0) {
            *out = &ledger->splits.items[i];
            return ERR_OK;
        }
    }
    return question_refuse(q, 0, PARAM_MOMENT_MS, ERR_NOT_FOUND,
                           "moment_ms: there are no mappings of that moment");
}

struct part_column {
    const char *key;
    size_t offset; // in struct ledger_part
};

static const struct part_column part_columns[] = {
    {"rss_bytes", offsetof(struct ledger_part, rss_bytes)},
    {"virtual_bytes", offsetof(struct ledger_part, virtual_bytes)},
    {"swap_bytes", offsetof(struct ledger_part, swap_bytes)},
};

// Who mapped it: the call site, and the whole stack.
static MUST_USE enum err write_origin(struct question *q,
                                      const struct ledger_part_vec *parts,
                                      struct code_tables *tables,
                                      struct told_stacks *told,
                                      struct json_writer *w)
{
    CLEANUP(u32_vec_release) struct u32_vec locations = {0};
    CLEANUP(u32_vec_release) struct u32_vec inlined = {0};
    column_begin(w, "location");
    for (size_t i = 0; i < parts->len; i++) {
        const uint32_t node = parts->items[i].node;
        const uint32_t location =
            node != REC_NONE ? profile_call_site(q->profile, node).location : REC_NONE;
        json_position(w, code_tables_location(tables, SIDE_NEW, location));
        u32_vec_clear(&locations);
        u32_vec_clear(&inlined);
        TRY(ledger_stack(q->profile, node, &locations, &inlined));
        TRY(told_stacks_add_frames(told, &locations, &inlined, tables));
    }
    column_end(w);
    told_stacks_write_columns(told, 0, parts->len, w);
    return ERR_OK;
}

static MUST_USE enum err
write_mappings(struct question *q, const struct ledger_split *split, struct json_writer *w)
{
    static const struct ledger_split none = {0};
    const struct ledger_part_vec *parts = split != NULL ? &split->parts : &none.parts;
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(told_stacks_release) struct told_stacks told = {0};
    table_begin(w, "mappings", parts->len);
    column_begin(w, "process");
    for (size_t i = 0; i < parts->len; i++) {
        json_u64(w, parts->items[i].process);
    }
    column_end(w);
    column_begin(w, "path");
    for (size_t i = 0; i < parts->len; i++) {
        json_string(w, profile_string(q->profile, parts->items[i].path));
    }
    column_end(w);
    column_begin(w, "kind");
    for (size_t i = 0; i < parts->len; i++) {
        json_string(w, ledger_kind(parts->items[i].kind)->key);
    }
    column_end(w);
    column_begin(w, "areas");
    for (size_t i = 0; i < parts->len; i++) {
        json_u64(w, parts->items[i].areas);
    }
    column_end(w);
    column_begin(w, "is_estimate");
    for (size_t i = 0; i < parts->len; i++) {
        json_bool(w, parts->items[i].is_estimate);
    }
    column_end(w);
    for (size_t c = 0; c < ARRAY_LEN(part_columns); c++) {
        column_begin(w, part_columns[c].key);
        for (size_t i = 0; i < parts->len; i++) {
            const char *field = (const char *)&parts->items[i] + part_columns[c].offset;
            json_u64(w, *(const uint64_t *)(const void *)field);
        }
        column_end(w);
    }
    TRY(write_origin(q, parts, &tables, &told, w));
    table_end(w);
    told_stacks_write_frames(&told, w);
    return code_tables_write(&tables, w);
}

enum err api_ledger(struct question *q, struct json_writer *w)
{
    CLEANUP(ledger_release) struct ledger ledger = {0};
    TRY(ledger_build(q->profile, (uint32_t)request_number(q->request, PARAM_PROCESS, 0), &ledger));
    const struct ledger_split *split;
    TRY(choose_split(q, &ledger, &split));
    json_key_u64(w, "peak_rss_bytes", ledger.peak_rss_bytes);
    json_key_u64(w, "peak_rss_ms", ledger.peak_rss_ms);
    write_samples(&ledger, w);
    write_kinds(w);
    write_splits(&ledger, w);
    json_key(w, "moment_ms");
    if (split != NULL) {
        json_u64(w, split->time_ms);
    } else {
        json_null(w);
    }
    return write_mappings(q, split, w);
}
