// SPDX-License-Identifier: MIT
// recording_reader: see recording_reader.h.
//
// Steps: refuse a file that is not a recording; index the chunks; group them into snapshots; read
// the newest whole one, and older ones only if that one is damaged; repair; describe what is
// missing.
#include "recording/read/recording_reader.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/memory_limit.h"
#include "host/text/format.h"
#include "recording/format/chunk_index.h"
#include "recording/format/recording_file.h"
#include "recording/read/damage_report.h"
#include "recording/read/recording_repair.h"
#include "recording/read/table_reader.h"

enum {
    MAX_TRIES = 3
}; // limit for whole snapshots to read until one is undamaged

// For files without an announcement of their tables. Real recordings need 10 to 50 bytes of memory
// for each byte of the file. A table of equal entries may need thousands, but is then short in the
// file. The base allows for that.
const struct recording_limits recording_default_limits = {.base_bytes = 256 << 20, .ratio = 256};

struct snapshot {
    size_t first; // in the index
    size_t end;
    uint64_t parts;
    uint32_t generation;
    bool is_whole; // with begin, end and every part between; payloads unchecked
};
DEFINE_VEC(snapshot_vec, struct snapshot);

// A snapshot after reading.
struct loaded {
    struct recording recording;         // owned
    struct damage_report damage_report; // only the part about the snapshot
    uint64_t entries;
    uint64_t unknown_chunks;
    bool is_shown; // it has content to show
};

struct opening {
    struct chunk_source source;
    struct recording_limits limits;
    struct chunk_index index;
    struct snapshot_vec snapshots;
    struct chunk_payload payload;
    bool is_header_damaged;
};

static void opening_release(struct opening *o)
{
    chunk_index_release(&o->index);
    snapshot_vec_release(&o->snapshots);
    chunk_payload_release(&o->payload);
}

static void loaded_release(struct loaded *l)
{
    recording_release(&l->recording);
}

static bool continues_chunk(const struct chunk_place *before, const struct chunk_place *place)
{
    return before->head.generation == place->head.generation &&
           before->head.part < place->head.part;
}

// Add a chunk to the last snapshot if it continues that one, else to a new one.
static enum err add_to_snapshots(struct opening *o, size_t i, const struct chunk_place *before)
{
    const struct chunk_place *place = &o->index.chunks.items[i];
    if (before == NULL || !continues_chunk(before, place)) {
        struct snapshot fresh = {.first = i,
                                 .generation = place->head.generation,
                                 .is_whole = place->head.type == CHUNK_SNAPSHOT_BEGIN};
        TRY(snapshot_vec_push(&o->snapshots, fresh));
    }
    struct snapshot *last = &o->snapshots.items[o->snapshots.len - 1];
    last->is_whole = last->is_whole && place->head.part == last->parts;
    last->parts++;
    last->end = i + 1;
    return ERR_OK;
}

// Group the chunks into runs of one generation. Chunks of generation 0 may be between them.
static enum err find_snapshots(struct opening *o)
{
    const struct chunk_place *before = NULL;
    for (size_t i = 0; i < o->index.chunks.len; i++) {
        if (o->index.chunks.items[i].head.generation == 0) {
            continue;
        }
        TRY(add_to_snapshots(o, i, before));
        before = &o->index.chunks.items[i];
    }
    for (size_t i = 0; i < o->snapshots.len; i++) {
        struct snapshot *s = &o->snapshots.items[i];
        s->is_whole =
            s->is_whole && o->index.chunks.items[s->end - 1].head.type == CHUNK_SNAPSHOT_END;
    }
    return ERR_OK;
}

// A snapshot that is being read.
struct loading {
    struct table_reader tables;
    struct row_merger merger;
    uint64_t table_bytes; // limit for the memory of the tables
    uint64_t raw_bytes;   // that may still be unpacked
    struct loaded loaded;
};

static void loading_release(struct loading *l)
{
    table_reader_release(&l->tables);
    row_merger_release(&l->merger);
    loaded_release(&l->loaded);
}

// Let the tables take what the snapshot has announced. Without an announcement, or beyond it, the
// size of the file limits them; nothing exceeds the share of memory.
static void set_limits(const struct opening *o, struct loading *l)
{
    const uint64_t by_size = o->limits.base_bytes + o->limits.ratio * o->source.bytes;
    const uint64_t need = table_reader_need(&l->tables);
    const uint64_t wanted = capped_sum_u64(by_size, need);
    const uint64_t most = max_u64(l->table_bytes, min_u64(wanted, o->limits.most_bytes));
    l->tables.budget_bytes += most - l->table_bytes;
    l->raw_bytes += most - l->table_bytes;
    l->table_bytes = most;
}

static enum err read_announcement(const struct opening *o, struct loading *l, struct bytes payload)
{
    TRY(table_reader_announce(&l->tables, payload));
    set_limits(o, l);
    return ERR_OK;
}

// Return whether the rows of threads are merged.
static bool merges_threads(const struct opening *o, const struct table_reader *tables)
{
    return o->limits.lean_rows != 0 &&
           tables->tables[REC_TABLE_ROWS].announced > o->limits.lean_rows;
}

// Return whether a table is omitted: its entries belong to rows that are merged.
static bool
is_omitted(const struct opening *o, const struct table_reader *tables, enum rec_table_index index)
{
    return merges_threads(o, tables) &&
           (rec_table_is_history(index) || index == REC_TABLE_REALLOCS ||
            index == REC_TABLE_SURVIVORS || index == REC_TABLE_BLOCKS);
}

static enum err add_to_table(const struct opening *o,
                             struct loading *l,
                             enum rec_table_index index,
                             struct bytes payload)
{
    const size_t before = l->tables.tables[REC_TABLE_ROWS].count;
    TRY(table_reader_add(&l->tables, index, payload));
    if (index != REC_TABLE_ROWS || !merges_threads(o, &l->tables)) {
        return ERR_OK;
    }
    l->tables.recording.has_merged_threads = true;
    l->tables.recording.meta.unknown |= REC_UNKNOWN_OWN_PEAK;
    return table_reader_merge_threads(&l->tables, &l->merger, before);
}

// Read one chunk of a snapshot into the tables. ERR_CORRUPT, ERR_LIMIT and ERR_UNSUPPORTED concern
// only this chunk.
static enum err read_chunk(struct opening *o,
                           const struct chunk_place *place,
                           struct loading *l,
                           struct err_info *info)
{
    const struct rec_table *table = rec_table_find(place->head.type);
    struct bytes payload;
    bool is_frame =
        place->head.type == CHUNK_SNAPSHOT_BEGIN || place->head.type == CHUNK_SNAPSHOT_END;
    if (table == NULL && !is_frame) {
        l->loaded.unknown_chunks++;
        return chunk_payload_check(&o->source, place, &o->payload, info);
    }
    if (table != NULL && is_omitted(o, &l->tables, (enum rec_table_index)(table - rec_tables))) {
        return ERR_OK;
    }
    if (place->head.raw_bytes > l->raw_bytes) {
        return err_set(info, ERR_LIMIT, "'%s' unpacks to more than its size allows",
                       o->source.path);
    }
    l->raw_bytes -= place->head.raw_bytes;
    TRY(chunk_payload_read(&o->source, place, &o->payload, &payload, info));
    enum err err = ERR_OK;
    if (place->head.type == CHUNK_SNAPSHOT_BEGIN) {
        err = read_announcement(o, l, payload);
    } else if (table != NULL) {
        err = add_to_table(o, l, (enum rec_table_index)(table - rec_tables), payload);
    }
    return err == ERR_OK ? ERR_OK
                         : err_set(info, err, "'%s': the chunk at %" PRIu64 " makes no sense",
                                   o->source.path, place->offset);
}

static bool is_about_the_chunk(enum err err)
{
    return err == ERR_CORRUPT || err == ERR_LIMIT || err == ERR_UNSUPPORTED || err == ERR_TRUNCATED;
}

static void
count_entries(const struct opening *o, const struct table_reader *tables, struct loaded *l)
{
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const bool is_there = !is_omitted(o, tables, (enum rec_table_index)i);
        l->damage_report.announced[i] = is_there ? tables->tables[i].announced : 0;
        l->damage_report.counts[i] = tables->tables[i].count + tables->tables[i].merged;
        l->entries += tables->tables[i].count;
    }
    l->is_shown =
        tables->tables[REC_TABLE_TOTALS].is_there || l->damage_report.counts[REC_TABLE_ROWS] > 0;
}

// Return whether a table of the history would leave too little memory for the other tables. An
// announcement that leaves a quarter for texts leaves enough.
static bool is_beyond_its_share(const struct opening *o,
                                const struct chunk_place *place,
                                const struct loading *l)
{
    const struct rec_table *table = rec_table_find(place->head.type);
    const bool is_announced =
        l->tables.is_announced && table_reader_need(&l->tables) <= o->limits.most_bytes / 4 * 3;
    return !is_announced && table != NULL &&
           rec_table_is_history((enum rec_table_index)(table - rec_tables)) &&
           l->tables.budget_bytes < l->table_bytes / 2;
}

// Read the chunks of a snapshot into the tables.
static enum err read_chunks(struct opening *o,
                            const struct snapshot *snapshot,
                            struct loading *l,
                            struct err_info *info)
{
    struct damage_report *report = &l->loaded.damage_report;
    for (size_t i = snapshot->first; i < snapshot->end; i++) {
        const struct chunk_place *place = &o->index.chunks.items[i];
        if (o->limits.progress != NULL) {
            progress_update(o->limits.progress, "reading the recording", i - snapshot->first,
                            snapshot->end - snapshot->first);
        }
        if (place->head.generation == 0) {
            continue;
        }
        if (is_beyond_its_share(o, place, l)) {
            report->is_pruned = true;
            continue;
        }
        enum err err = read_chunk(o, place, l, info);
        if (err != ERR_OK && !is_about_the_chunk(err)) {
            return err;
        }
        if (err != ERR_OK) {
            report->damaged_chunks++;
            report->is_limited = report->is_limited || err == ERR_LIMIT;
        }
    }
    return ERR_OK;
}

static enum err load_snapshot(struct opening *o,
                              const struct snapshot *snapshot,
                              struct loaded *out,
                              struct err_info *info)
{
    CLEANUP(loading_release)
    struct loading l = {.loaded.damage_report = {.generation = snapshot->generation,
                                                 .is_whole = snapshot->is_whole}};
    struct damage_report *report = &l.loaded.damage_report;
    set_limits(o, &l);
    l.raw_bytes = o->limits.base_bytes + o->limits.ratio * o->source.bytes;
    TRY(read_chunks(o, snapshot, &l, info));
    if (report->is_pruned) {
        table_reader_drop_history(&l.tables); // a part of it would pass for complete
    }
    report->most_bytes = l.table_bytes;
    report->is_memory_limit = l.table_bytes == o->limits.most_bytes;
    count_entries(o, &l.tables, &l.loaded);
    // For a recording that is too large, a part is useless: names or callers would be missing.
    l.loaded.is_shown = l.loaded.is_shown && !(report->is_limited && report->is_memory_limit);
    struct repair_tally tally = {0};
    bool has_totals = l.tables.tables[REC_TABLE_TOTALS].is_there;
    if (table_reader_finish(&l.tables, &l.loaded.recording) != ERR_OK ||
        recording_repair(&l.loaded.recording, has_totals, &tally) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for the recording '%s'", o->source.path);
    }
    report->dropped = tally.dropped;
    report->repaired = tally.repaired;
    *out = l.loaded;
    l.loaded.recording = (struct recording){0};
    return ERR_OK;
}

// Replace `best` by `candidate` if that holds more.
static void take_better(struct loaded *best, struct loaded *candidate)
{
    if (best->is_shown && (!candidate->is_shown || best->entries >= candidate->entries)) {
        return;
    }
    loaded_release(best);
    *best = *candidate;
    candidate->recording = (struct recording){0};
}

// Read the whole snapshots, newest first. Set *is_intact if one of them is undamaged; otherwise the
// result is the fullest one.
static enum err
try_whole_snapshots(struct opening *o, struct loaded *best, bool *is_intact, struct err_info *info)
{
    unsigned tries = 0;
    *is_intact = false;
    for (size_t i = o->snapshots.len; i-- > 0 && tries < MAX_TRIES && !*is_intact;) {
        if (!o->snapshots.items[i].is_whole) {
            continue;
        }
        CLEANUP(loaded_release) struct loaded candidate = {0};
        TRY(load_snapshot(o, &o->snapshots.items[i], &candidate, info));
        *is_intact = candidate.damage_report.damaged_chunks == 0 && candidate.is_shown;
        if (*is_intact) {
            loaded_release(best);
            best->is_shown = false;
        }
        take_better(best, &candidate);
        tries++;
    }
    return ERR_OK;
}

static const struct snapshot *longest_snapshot(const struct opening *o)
{
    const struct snapshot *longest = NULL;
    for (size_t i = 0; i < o->snapshots.len; i++) {
        const struct snapshot *snapshot = &o->snapshots.items[i];
        if (!snapshot->is_whole && (longest == NULL || snapshot->parts >= longest->parts)) {
            longest = snapshot;
        }
    }
    return longest;
}

static enum err choose_snapshot(struct opening *o, struct loaded *best, struct err_info *info)
{
    bool is_intact = false;
    TRY(try_whole_snapshots(o, best, &is_intact, info));
    const struct snapshot *longest = longest_snapshot(o);
    if (best->is_shown || longest == NULL) {
        return ERR_OK;
    }
    CLEANUP(loaded_release) struct loaded candidate = {0};
    TRY(load_snapshot(o, longest, &candidate, info));
    take_better(best, &candidate);
    return ERR_OK;
}

static void
describe_result(const struct opening *o, const struct loaded *l, struct recording_open_result *out)
{
    struct damage_report s = l->damage_report;
    s.is_header_damaged = o->is_header_damaged;
    s.is_contents_damaged = o->index.is_contents_damaged;
    s.has_footer = o->index.has_footer;
    s.is_cut = o->index.is_cut;
    s.cut_bytes = o->index.cut_bytes;
    s.damaged_bytes = o->index.damaged_bytes;
    s.damaged_offset = o->index.damaged_offset;
    s.newest_generation = o->snapshots.items[o->snapshots.len - 1].generation;
    s.is_running = l->recording.meta.state == REC_STATE_RUNNING;
    *out = (struct recording_open_result){
        .condition = damage_report_condition(&s),
        .generation = s.generation,
        .file_bytes = o->source.bytes,
        .unknown_chunks = l->unknown_chunks,
    };
    damage_report_text(&s, out->missing, sizeof(out->missing));
}

static enum err
refuse_hollow(const struct opening *o, const struct loaded *best, struct err_info *info)
{
    const struct damage_report *report = &best->damage_report;
    if (report->is_limited) {
        return err_set(info, ERR_LIMIT, "'%s' needs more memory than the limit of %s, %s",
                       o->source.path, format_bytes(report->most_bytes).text,
                       report->is_memory_limit ? "its share of the memory here"
                                               : "which is for a file of its size");
    }
    if (o->index.damaged_bytes > 0 || o->index.has_footer || report->damaged_chunks > 0) {
        return err_set(info, ERR_CORRUPT, "'%s' is so damaged that nothing in it can be shown",
                       o->source.path);
    }
    return err_set(info, ERR_TRUNCATED,
                   "'%s' is a recording that is truncated before its first data", o->source.path);
}

// Data computed from the tables takes several times their memory.
static uint64_t share_of_memory(void)
{
    enum {
        SHARE = 8
    };
    static const uint64_t least_bytes = (uint64_t)64 << 20;
    const uint64_t share = memory_limit_here() / SHARE;
    return share > least_bytes ? share : least_bytes;
}

enum err recording_open_fd(int fd,
                           const char *name,
                           const struct recording_limits *limits,
                           struct recording *out,
                           struct recording_open_result *result,
                           struct err_info *info)
{
    CLEANUP(loaded_release) struct loaded best = {0};
    CLEANUP(opening_release)
    struct opening o = {.limits = limits != NULL ? *limits : recording_default_limits};
    TRY(recording_file_source(fd, name, &o.source, info));
    if (o.limits.most_bytes == 0) {
        o.limits.most_bytes = share_of_memory();
    }
    struct file_header header;
    TRY(recording_file_check(&o.source, &header, info));
    o.is_header_damaged = header.is_damaged;
    TRY(chunk_index_build(&o.source, o.limits.ignores_contents, &o.index, info));
    if (find_snapshots(&o) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for the snapshots of '%s'", name);
    }
    TRY(choose_snapshot(&o, &best, info));
    if (!best.is_shown) {
        return refuse_hollow(&o, &best, info);
    }
    if (result != NULL) {
        describe_result(&o, &best, result);
    }
    *out = TAKE(best.recording);
    return ERR_OK;
}
