// SPDX-License-Identifier: MIT
#include "profile/tables/rss_breakdown.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"

DEFINE_VEC(rss_sample_vec, struct rec_rss_sample);

// The state of all processes at the current time.
struct sweep {
    const struct recording *recording; // borrowed
    struct rss_sample_vec held;        // by process, as last sampled
    struct u32_vec ended;              // processes, by time of their ends
    size_t next_end;                   // in ended
    struct rss_breakdown_sample sum;
};

static void sweep_release(struct sweep *sweep)
{
    rss_sample_vec_release(&sweep->held);
    u32_vec_release(&sweep->ended);
}

static int compare_ends(const void *left, const void *right, void *context)
{
    const struct rec_process *processes = context;
    uint64_t left_ms = processes[*(const uint32_t *)left].end_ms;
    uint64_t right_ms = processes[*(const uint32_t *)right].end_ms;
    return order_u64(left_ms, right_ms);
}

static MUST_USE enum err sweep_init(struct sweep *sweep)
{
    const struct recording *recording = sweep->recording;
    TRY(rss_sample_vec_resize(&sweep->held, recording->process_count));
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *process = &recording->processes[i];
        if (process->end_ms > process->start_ms) { // a running process has no end
            TRY(u32_vec_push(&sweep->ended, (uint32_t)i));
        }
    }
    u32_vec_sort_by(&sweep->ended, compare_ends, recording->processes);
    return ERR_OK;
}

// Replace the process's last sample in the sum by `sample`. Unsigned differences wrap, so the
// result is exact.
static void replace_sample(struct sweep *sweep, uint32_t process, struct rec_rss_sample sample)
{
    struct rec_rss_sample *held = &sweep->held.items[process];
    struct rss_breakdown_sample *sum = &sweep->sum;
    sum->rss_bytes += sample.rss_bytes - held->rss_bytes;
    sum->anonymous_bytes += sample.anonymous_bytes - held->anonymous_bytes;
    sum->file_bytes += sample.file_bytes - held->file_bytes;
    sum->shmem_bytes += sample.shmem_bytes - held->shmem_bytes;
    sum->doubted_bytes += sample.doubted_bytes - held->doubted_bytes;
    sum->swap_bytes += sample.swap_bytes - held->swap_bytes;
    sum->minor_faults += sample.minor_faults - held->minor_faults;
    sum->major_faults += sample.major_faults - held->major_faults;
    sum->break_bytes += sample.break_bytes - held->break_bytes;
    sum->data_bytes += sample.data_bytes - held->data_bytes;
    sum->mapped_bytes += sample.mapped_bytes - held->mapped_bytes;
    *held = sample;
}

// Return what a sample adds to a sum of processes, or to the figure of one.
static struct rec_rss_sample part_of(struct rec_rss_sample sample, bool is_sum)
{
    if (!is_sum) {
        sample.doubted_bytes = 0;
        return sample;
    }
    sample.rss_bytes = rec_rss_sample_counted(&sample);
    sample.anonymous_bytes -= sample.repeated_anonymous_bytes;
    sample.file_bytes -= sample.repeated_file_bytes;
    sample.shmem_bytes -= sample.repeated_shmem_bytes;
    return sample;
}

static void end_processes(struct sweep *sweep, uint64_t time_ms)
{
    while (sweep->next_end < sweep->ended.len) {
        uint32_t process = sweep->ended.items[sweep->next_end];
        if (sweep->recording->processes[process].end_ms >= time_ms) {
            break;
        }
        replace_sample(sweep, process, (struct rec_rss_sample){0});
        sweep->next_end++;
    }
}

static bool counts_process(const struct recording *recording, uint32_t process, uint32_t pid)
{
    return pid == 0 || recording->processes[process].pid == pid;
}

static void add_live(const struct recording *recording, struct rss_breakdown_sample *sample)
{
    uint64_t slice = recording->slice_ms > 0 ? sample->time_ms / recording->slice_ms : 0;
    sample->has_live = slice < recording->slice_count;
    if (sample->has_live) {
        uint64_t live = recording->slices[slice].live_bytes;
        sample->live_bytes = live;
        sample->other_anonymous_bytes =
            sample->anonymous_bytes > live ? sample->anonymous_bytes - live : 0;
    }
}

static void
find_peak(const struct recording *recording, uint32_t pid, struct rss_breakdown *rss_breakdown)
{
    for (size_t i = 0; i < rss_breakdown->samples.len; i++) {
        const struct rss_breakdown_sample *sample = rss_breakdown->samples.items + i;
        if (sample->rss_bytes > rss_breakdown->peak_rss_bytes) {
            rss_breakdown->peak_rss_bytes = sample->rss_bytes;
            rss_breakdown->peak_rss_ms = sample->time_ms;
        }
        rss_breakdown->peak_rss_at_most =
            max_u64(rss_breakdown->peak_rss_at_most, sample->rss_bytes + sample->doubted_bytes);
    }
    const uint64_t sampled_bytes = rss_breakdown->peak_rss_bytes;
    for (uint32_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *process = recording->processes + i;
        const uint64_t own = process->peak_rss_bytes;
        if (!counts_process(recording, i, pid) || own <= rss_breakdown->peak_rss_bytes) {
            continue;
        }
        rss_breakdown->peak_rss_bytes = own;
        if (own > sampled_bytes + sampled_bytes / 20) { // it was between samples, or before them
            rss_breakdown->peak_rss_ms = process->end_ms;
        }
    }
    rss_breakdown->peak_rss_at_most =
        max_u64(rss_breakdown->peak_rss_at_most, rss_breakdown->peak_rss_bytes);
}

static bool is_only_process(const struct recording *recording, uint32_t pid)
{
    for (uint32_t i = 0; i < recording->process_count; i++) {
        if (!counts_process(recording, i, pid)) {
            return false;
        }
    }
    return true;
}

// Add a snapshot: `is_sum` of all processes, in which pages that several of them share count once.
static void add_snapshot(struct rss_breakdown_split *split,
                         const struct rec_memory_snapshot *snapshot,
                         bool is_sum)
{
    const uint64_t counted_bytes = rec_snapshot_counted_rss(snapshot);
    split->repeated_bytes += is_sum ? snapshot->rss_bytes - counted_bytes : 0;
    split->rss_bytes += is_sum ? counted_bytes : snapshot->rss_bytes;
    const bool knows = snapshot->kept_bytes == 0 || (snapshot->flags & REC_SNAPSHOT_RELEASED) != 0;
    split->knows_release = knows && (split->processes == 0 || split->knows_release);
    split->flags |= snapshot->flags;
    split->processes++;
    split->swap_bytes += snapshot->swap_bytes;
    split->requested_bytes += snapshot->requested_bytes;
    split->empty_page_bytes += snapshot->empty_page_bytes;
    split->sparse_page_bytes += snapshot->sparse_page_bytes;
    split->sparse_block_bytes += snapshot->sparse_block_bytes;
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        split->bytes[kind] +=
            is_sum ? rec_snapshot_counted(snapshot, kind) : snapshot->bytes[kind - 1];
    }
}

static int compare_parts(const void *left, const void *right)
{
    const struct rss_breakdown_part *a = left;
    const struct rss_breakdown_part *b = right;
    return order_u64(a->kind, b->kind)
               ?: order_u64(b->rss_bytes, a->rss_bytes)
               ?: order_u64(b->virtual_bytes, a->virtual_bytes);
}

// Return how much a part adds to the size of all: nothing if all its pages are repeated ones.
static uint64_t bytes_counted_once(const struct rec_part *part, uint64_t repeated_bytes)
{
    return repeated_bytes > 0 && repeated_bytes == part->rss_bytes ? 0 : part->virtual_bytes;
}

// Add the parts of the snapshot at `index`. Parts are sorted by snapshot; *at is the next one.
static MUST_USE enum err add_parts(const struct recording *recording,
                                   size_t index,
                                   bool is_sum,
                                   size_t *at,
                                   struct rss_breakdown_part_vec *out)
{
    while (*at < recording->part_count && recording->parts[*at].snapshot < index) {
        (*at)++;
    }
    for (; *at < recording->part_count && recording->parts[*at].snapshot == index; (*at)++) {
        const struct rec_part *part = &recording->parts[*at];
        const uint64_t repeated_bytes = is_sum ? part->repeated_bytes : 0;
        TRY(rss_breakdown_part_vec_push(
            out,
            (struct rss_breakdown_part){
                .kind = part->kind,
                .process = recording->memory_snapshots[index].process,
                .node = part->node,
                .path = part->path,
                .allocator = part->allocator,
                .areas = part->areas,
                .is_estimate = part->is_estimate != 0,
                .virtual_bytes = bytes_counted_once(part, repeated_bytes),
                .rss_bytes = part->rss_bytes - repeated_bytes,
                .swap_bytes = part->swap_bytes,
                .released_bytes = min_u64(part->released_bytes, part->rss_bytes - repeated_bytes),
                .huge_bytes = min_u64(part->huge_bytes, part->rss_bytes - repeated_bytes),
                .blank_bytes = min_u64(part->blank_bytes, part->rss_bytes - repeated_bytes),
            }));
    }
    return ERR_OK;
}

static MUST_USE enum err add_survivor(const struct profile *profile,
                                      const struct rec_survivor *survivor,
                                      struct rss_breakdown_survivor_vec *out)
{
    const uint32_t location = profile_call_site(profile, survivor->node).location;
    size_t i = 0;
    while (i < out->len && out->items[i].location != location) {
        i++;
    }
    if (i == out->len) {
        TRY(rss_breakdown_survivor_vec_push(
            out, (struct rss_breakdown_survivor){.node = survivor->node,
                                                 .location = location,
                                                 .oldest_ms = survivor->oldest_ms}));
    }
    struct rss_breakdown_survivor *sum = &out->items[i];
    sum->blocks += survivor->blocks;
    sum->block_bytes += survivor->block_bytes;
    sum->held_bytes += survivor->held_bytes;
    sum->oldest_ms = min_u64(sum->oldest_ms, survivor->oldest_ms);
    sum->newest_ms = max_u64(sum->newest_ms, survivor->newest_ms);
    return ERR_OK;
}

// Add the survivors of the snapshot at `index`, which are sorted as parts are.
static MUST_USE enum err add_survivors(const struct profile *profile,
                                       size_t index,
                                       size_t *at,
                                       struct rss_breakdown_survivor_vec *out)
{
    const struct recording *recording = &profile->recording;
    while (*at < recording->survivor_count && recording->survivors[*at].snapshot < index) {
        (*at)++;
    }
    for (; *at < recording->survivor_count && recording->survivors[*at].snapshot == index;
         (*at)++) {
        TRY(add_survivor(profile, &recording->survivors[*at], out));
    }
    return ERR_OK;
}

static int compare_survivors(const void *left, const void *right)
{
    const struct rss_breakdown_survivor *a = left;
    const struct rss_breakdown_survivor *b = right;
    return order_u64(b->held_bytes, a->held_bytes) ?: order_u64(a->location, b->location);
}

static MUST_USE enum err
build_splits(const struct profile *profile, uint32_t pid, struct rss_breakdown_split_vec *splits)
{
    const struct recording *recording = &profile->recording;
    size_t part = 0;
    size_t survivor = 0;
    for (size_t i = 0; i < recording->memory_snapshot_count; i++) {
        const struct rec_memory_snapshot *snapshot = &recording->memory_snapshots[i];
        if (!counts_process(recording, snapshot->process, pid)) {
            continue;
        }
        struct rss_breakdown_split *split =
            splits->len > 0 ? splits->items + splits->len - 1 : NULL;
        if (split == NULL || split->time_ms != snapshot->time_ms) {
            TRY(rss_breakdown_split_vec_push(
                splits, (struct rss_breakdown_split){.time_ms = snapshot->time_ms}));
            split = splits->items + splits->len - 1;
        }
        add_snapshot(split, snapshot, pid == 0);
        TRY(add_parts(recording, i, pid == 0, &part, &split->parts));
        TRY(add_survivors(profile, i, &survivor, &split->survivors));
    }
    for (size_t i = 0; i < splits->len; i++) {
        rss_breakdown_part_vec_sort(&splits->items[i].parts, compare_parts);
        rss_breakdown_survivor_vec_sort(&splits->items[i].survivors, compare_survivors);
    }
    return ERR_OK;
}

// Add the sum after a sample. Until all samples of a moment are in it, it is of no moment: what one
// process gave back another one may have got.
static MUST_USE enum err add_moment(struct rss_breakdown_sample_vec *samples,
                                    const struct rss_breakdown_sample *sum)
{
    if (samples->len > 0 && samples->items[samples->len - 1].time_ms == sum->time_ms) {
        samples->items[samples->len - 1] = *sum;
        return ERR_OK;
    }
    return rss_breakdown_sample_vec_push(samples, *sum);
}

enum err rss_breakdown_build(const struct profile *profile, uint32_t pid, struct rss_breakdown *out)
{
    const struct recording *recording = &profile->recording;
    bool is_whole_heap = is_only_process(recording, pid);
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    CLEANUP(sweep_release) struct sweep sweep = {.recording = recording};
    TRY(sweep_init(&sweep));
    for (size_t i = 0; i < recording->rss_sample_count; i++) {
        struct rec_rss_sample sample = recording->rss_samples[i];
        if (!counts_process(recording, sample.process, pid)) {
            continue;
        }
        end_processes(&sweep, sample.time_ms);
        replace_sample(&sweep, sample.process, part_of(sample, pid == 0));
        struct rss_breakdown_sample sum = sweep.sum;
        sum.time_ms = sample.time_ms;
        if (is_whole_heap) {
            add_live(recording, &sum);
        }
        TRY(add_moment(&rss_breakdown.samples, &sum));
    }
    TRY(build_splits(profile, pid, &rss_breakdown.splits));
    find_peak(recording, pid, &rss_breakdown);
    *out = TAKE(rss_breakdown);
    return ERR_OK;
}

void rss_breakdown_release(struct rss_breakdown *rss_breakdown)
{
    rss_breakdown_sample_vec_release(&rss_breakdown->samples);
    for (size_t i = 0; i < rss_breakdown->splits.len; i++) {
        rss_breakdown_part_vec_release(&rss_breakdown->splits.items[i].parts);
        rss_breakdown_survivor_vec_release(&rss_breakdown->splits.items[i].survivors);
    }
    rss_breakdown_split_vec_release(&rss_breakdown->splits);
}

struct rss_breakdown_knows rss_breakdown_knows(const struct rss_breakdown *rss_breakdown)
{
    struct rss_breakdown_knows knows = {0};
    for (size_t i = 0; i < rss_breakdown->samples.len; i++) {
        const struct rss_breakdown_sample *sample = &rss_breakdown->samples.items[i];
        knows.kinds |= (sample->anonymous_bytes | sample->file_bytes | sample->shmem_bytes) != 0;
        knows.faults |= (sample->minor_faults | sample->major_faults) != 0;
        knows.areas |= (sample->break_bytes | sample->data_bytes | sample->mapped_bytes) != 0;
    }
    return knows;
}

bool rss_breakdown_is_of_peak(const struct rss_breakdown *rss_breakdown,
                              const struct rss_breakdown_split *split)
{
    const uint64_t twentieth = rss_breakdown->peak_rss_bytes / 20;
    return split->rss_bytes >= rss_breakdown->peak_rss_bytes - twentieth;
}

static const struct rss_breakdown_split *find_flag(const struct rss_breakdown *rss_breakdown,
                                                   uint32_t flag)
{
    for (size_t i = rss_breakdown->splits.len; i > 0; i--) {
        if ((rss_breakdown->splits.items[i - 1].flags & flag) != 0) {
            return &rss_breakdown->splits.items[i - 1];
        }
    }
    return NULL;
}

const struct rss_breakdown_split *rss_breakdown_peak(const struct rss_breakdown *rss_breakdown)
{
    return find_flag(rss_breakdown, REC_SNAPSHOT_PEAK);
}

const struct rss_breakdown_split *rss_breakdown_last(const struct rss_breakdown *rss_breakdown)
{
    return find_flag(rss_breakdown, REC_SNAPSHOT_LAST);
}

uint64_t rss_breakdown_split_age_ms(const struct profile *profile,
                                    const struct rss_breakdown_split *split)
{
    const uint64_t runtime_ms = profile->recording.meta.runtime_ms;
    return runtime_ms > split->time_ms ? runtime_ms - split->time_ms : 0;
}

bool rss_breakdown_is_heap(uint32_t kind)
{
    return kind == REC_PART_LIVE || kind == REC_PART_ROUNDING || kind == REC_PART_KEPT;
}

bool rss_breakdown_is_estimate(const struct rss_breakdown_split *split, uint32_t kind)
{
    return kind == REC_PART_ROUNDING || kind == REC_PART_KEPT ||
           (kind == REC_PART_LIVE && (split->flags & REC_SNAPSHOT_ESTIMATED) != 0);
}

enum err rss_breakdown_stack(const struct profile *profile,
                             uint32_t node,
                             struct u32_vec *locations,
                             struct u32_vec *inlined)
{
    const struct recording *recording = &profile->recording;
    for (uint32_t at = node; at != REC_NONE && at != 0; at = recording->nodes[at].parent) {
        const struct code_chain chain =
            code_index_node_chain(&profile->code, at, recording->nodes[at].frame);
        for (size_t i = 0; i < chain.count; i++) {
            TRY(u32_vec_push(locations, chain.locations[i]));
            TRY(u32_vec_push(inlined, i + 1 < chain.count));
        }
    }
    return ERR_OK;
}

uint32_t rss_breakdown_location(const struct profile *profile,
                                const struct rss_breakdown_part *part)
{
    return part->node != REC_NONE && part->kind == REC_PART_MAPPED
               ? profile_call_site(profile, part->node).location
               : REC_NONE;
}

// Add the figures of `part` to those of the same call site or path.
static MUST_USE enum err merge_part(const struct profile *profile,
                                    const struct rss_breakdown_part *part,
                                    struct rss_breakdown_part_vec *sums)
{
    const uint32_t location = rss_breakdown_location(profile, part);
    for (size_t i = 0; i < sums->len; i++) {
        struct rss_breakdown_part *sum = &sums->items[i];
        if (rss_breakdown_location(profile, sum) == location &&
            (location != REC_NONE || sum->path == part->path)) {
            sum->areas += part->areas;
            sum->is_estimate = sum->is_estimate || part->is_estimate;
            sum->rss_bytes += part->rss_bytes;
            sum->virtual_bytes += part->virtual_bytes;
            sum->swap_bytes += part->swap_bytes;
            sum->huge_bytes += part->huge_bytes;
            sum->blank_bytes += part->blank_bytes;
            return ERR_OK;
        }
    }
    return rss_breakdown_part_vec_push(sums, *part);
}

enum err rss_breakdown_top_parts(const struct profile *profile,
                                 const struct rss_breakdown_split *split,
                                 uint32_t kind,
                                 size_t limit,
                                 struct rss_breakdown_part_vec *out,
                                 struct rss_breakdown_rest *out_rest)
{
    struct rss_breakdown_rest rest = {0};
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        if (part->kind == kind && part->rss_bytes > 0) {
            TRY(merge_part(profile, part, out));
        }
    }
    rss_breakdown_part_vec_sort(out, compare_parts);
    for (size_t i = limit; i < out->len; i++) {
        rest.count++;
        rest.rss_bytes += out->items[i].rss_bytes;
    }
    out->len = min_u64(out->len, limit);
    *out_rest = rest;
    return ERR_OK;
}

const struct rss_breakdown_kind *rss_breakdown_kind(uint32_t kind)
{
    static const struct rss_breakdown_kind kinds[REC_PART_KINDS + 1] = {
        [0] = {"unknown", "unknown"},
        [REC_PART_LIVE] = {"live", "live heap blocks"},
        [REC_PART_ROUNDING] = {"rounding", "rounding in blocks"},
        [REC_PART_KEPT] = {"kept", "kept by the allocator"},
        [REC_PART_MAPPED] = {"mapped", "mapped by the program"},
        [REC_PART_STACK] = {"stack", "thread stacks"},
        [REC_PART_FILE] = {"file", "files"},
        [REC_PART_SHARED] = {"shared", "shared memory"},
        [REC_PART_OWN] = {"own", "cairn's own"},
        [REC_PART_REST] = {"rest", "not explained"},
    };
    return &kinds[kind <= REC_PART_KINDS ? kind : 0];
}
