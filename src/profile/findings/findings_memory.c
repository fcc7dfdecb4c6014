// SPDX-License-Identifier: MIT
// findings_memory: findings on what RSS consisted of, and on heaps that were not seen.
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "profile/findings/findings_builder.h"
#include "profile/findings/findings_cure.h"
#include "profile/model/function_name.h"
#include "profile/tables/unseen.h"

#define MIB              (UINT64_C(1) << 20)
#define RSS_BYTES_MIN    (8 * MIB)
#define SPARSE_BYTES_MIN (4 * MIB)

enum {
    SPARSE_SHARE = 4,       // a quarter of the resident heap without its empty pages
    ESTIMATE_PER_SCORE = 4, // estimated bytes that count as one
    MORE_SHARE = 4,         // a quarter more
};

// The function that mapped most resident memory of a kind, over all its call sites.
struct mapper {
    uint32_t location; // of its largest mapping; REC_NONE: unknown
    uint64_t bytes;
};

static MUST_USE enum err find_mapper(const struct profile *profile,
                                     const struct rss_breakdown_split *split,
                                     uint32_t kind,
                                     struct mapper *out)
{
    CLEANUP(u64_vec_release) struct u64_vec sums = {0}; // by function
    TRY(u64_vec_resize(&sums, profile->code.functions.len));
    *out = (struct mapper){.location = REC_NONE};
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        const uint32_t location = part->kind == kind && part->node != REC_NONE
                                      ? profile_call_site(profile, part->node).location
                                      : REC_NONE;
        if (location != REC_NONE) {
            uint64_t *sum = &sums.items[profile->code.locations.items[location].function];
            *sum += part->rss_bytes;
            *out = *sum > out->bytes ? (struct mapper){.location = location, .bytes = *sum} : *out;
        }
    }
    return ERR_OK;
}

// What of resident memory is beside the live blocks.
struct beside {
    uint64_t bytes;
    uint32_t largest; // kind; of files, those of data alone count
    uint64_t largest_bytes;
    const struct rss_breakdown_part *file; // the largest file of data; NULL: none
    uint64_t code_bytes;                   // of other files
};

// Modules are named as the program was started, and files as the kernel finds them: an executable
// may have been started through a link to it from another folder.
static bool is_module(const struct profile *profile, rec_string path)
{
    const struct recording *recording = &profile->recording;
    const char *name = path_file_name(profile_string(profile, path));
    bool is_found = false;
    for (size_t i = 0; i < recording->module_count && !is_found; i++) {
        const char *module = profile_string(profile, recording->modules[i].path);
        is_found = strcmp(path_file_name(module), name) == 0;
    }
    return is_found || strstr(name, ".so") != NULL;
}

// Return the resident bytes of mapped files of data. Those of code are the program itself.
static uint64_t data_file_bytes(const struct profile *profile,
                                const struct rss_breakdown_split *split,
                                const struct rss_breakdown_part **out_largest)
{
    uint64_t bytes = 0;
    *out_largest = NULL;
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        if (part->kind == REC_PART_FILE && part->rss_bytes > 0 && !is_module(profile, part->path)) {
            bytes += part->rss_bytes;
            *out_largest = *out_largest == NULL || part->rss_bytes > (*out_largest)->rss_bytes
                               ? part
                               : *out_largest;
        }
    }
    return bytes;
}

static struct beside beside_of(const struct profile *profile,
                               const struct rss_breakdown_split *split)
{
    static const uint32_t kinds[] = {REC_PART_ROUNDING, REC_PART_KEPT,   REC_PART_MAPPED,
                                     REC_PART_STACK,    REC_PART_SHARED, REC_PART_REST};
    struct beside beside = {.largest = REC_PART_REST};
    for (size_t i = 0; split != NULL && i < ARRAY_LEN(kinds); i++) {
        const uint64_t bytes = split->bytes[kinds[i]];
        beside.bytes += bytes;
        beside.largest = bytes > beside.largest_bytes ? kinds[i] : beside.largest;
        beside.largest_bytes = max_u64(beside.largest_bytes, bytes);
    }
    if (split != NULL) {
        const uint64_t bytes = data_file_bytes(profile, split, &beside.file);
        beside.bytes += bytes;
        beside.largest = bytes > beside.largest_bytes ? REC_PART_FILE : beside.largest;
        beside.largest_bytes = max_u64(beside.largest_bytes, bytes);
        beside.code_bytes = excess_u64(split->bytes[REC_PART_FILE], bytes);
    }
    return beside;
}

// Return the split of the peak, or the last one if that has more beside its live blocks: then the
// program kept what it freed.
static const struct rss_breakdown_split *most_beside(const struct profile *profile,
                                                     const struct rss_breakdown *breakdown)
{
    const struct rss_breakdown_split *peak = rss_breakdown_peak(breakdown);
    const struct rss_breakdown_split *last = rss_breakdown_last(breakdown);
    const uint64_t peak_bytes = beside_of(profile, peak).bytes;
    return beside_of(profile, last).bytes > peak_bytes + peak_bytes / MORE_SHARE ? last : peak;
}

static void append_rss(const struct findings_builder *builder,
                       const struct rss_breakdown_split *split,
                       const struct beside *beside,
                       struct strbuf *out)
{
    strbuf_printf(out, "RSS was %s", format_bytes(split->rss_bytes).text);
    finding_append_moment(out, split->time_ms);
    strbuf_printf(out, ". Live heap blocks took %s of it",
                  finding_format_bytes(builder, split->bytes[REC_PART_LIVE]).text);
    if (beside->code_bytes > beside->largest_bytes) {
        strbuf_printf(out, ", and code of the program and its libraries %s",
                      format_bytes(beside->code_bytes).text);
    }
    strbuf_printf(
        out, ". The largest other part is \"%s\": ", rss_breakdown_kind(beside->largest)->phrase);
    strbuf_append_text(out, format_bytes(beside->largest_bytes).text);
}

// Say of files and stacks what they are, and what helps.
static void append_advice(const struct findings_builder *builder,
                          const struct rss_breakdown_split *split,
                          const struct beside *beside,
                          struct strbuf *out)
{
    uint64_t stacks = 0;
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        stacks += part->kind == REC_PART_STACK ? part->areas : 0;
    }
    if (beside->largest == REC_PART_FILE && beside->file != NULL) {
        strbuf_append_text(out, "; ");
        name_append_in_sentence(out,
                                profile_string(builder->selection->profile, beside->file->path));
        strbuf_printf(out,
                      " has %s of it. The kernel takes such pages when memory is short; "
                      "madvise(MADV_DONTNEED) or a smaller mapping gives them up at once.",
                      format_bytes(beside->file->rss_bytes).text);
    } else if (beside->largest == REC_PART_STACK && stacks > 0) {
        strbuf_printf(out,
                      ", of %s. A stack keeps what its deepest call touched: fewer threads, or "
                      "smaller frames, keep less.",
                      format_things(stacks, "stack", "stacks").text);
    } else if (beside->largest == REC_PART_REST) {
        finding_append_unasked(builder, split, out);
    } else {
        strbuf_append_char(out, '.');
    }
}

// Say what is not in RSS because the kernel has moved it out.
static void append_swapped(const struct rss_breakdown_split *split, struct strbuf *out)
{
    const struct rss_breakdown_part *most = NULL;
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        most = part->swap_bytes > (most != NULL ? most->swap_bytes : 0) ? part : most;
    }
    if (split->swap_bytes >= RSS_BYTES_MIN && most != NULL) {
        strbuf_printf(out, " %s more are swapped out, ", format_bytes(split->swap_bytes).text);
        strbuf_printf(out, "most of it \"%s\": RSS grows again when it is used.",
                      rss_breakdown_kind(most->kind)->phrase);
    }
}

static MUST_USE enum err find_rss(struct findings_builder *builder)
{
    const struct profile *profile = builder->selection->profile;
    const struct rss_breakdown_split *split = most_beside(profile, builder->breakdown);
    const struct beside beside = beside_of(profile, split);
    if (split == NULL || beside.bytes < RSS_BYTES_MIN ||
        beside.bytes < split->bytes[REC_PART_LIVE]) {
        return ERR_OK;
    }
    const bool is_estimate = rss_breakdown_is_estimate(split, beside.largest);
    struct mapper mapper;
    TRY(find_mapper(profile, split, beside.largest, &mapper));
    struct finding finding = {.kind = FINDING_RSS,
                              .confidence = is_estimate ? CONFIDENCE_LOW : CONFIDENCE_HIGH,
                              .location = mapper.location,
                              .bytes = beside.largest_bytes,
                              .whole_bytes = split->rss_bytes,
                              .score =
                                  is_estimate ? beside.bytes / ESTIMATE_PER_SCORE : beside.bytes,
                              .look = "-r"};
    struct strbuf *out = finding_begin(builder, &finding);
    append_rss(builder, split, &beside, out);
    if (finding.location != REC_NONE) {
        strbuf_append_text(out, "; ");
        finding_append_site(builder, out, finding.location);
        strbuf_printf(out, " mapped %s of it", format_bytes(mapper.bytes).text);
    }
    if (beside.largest == REC_PART_KEPT) {
        TRY(finding_append_cure(builder, split, out, &finding.confidence));
    } else {
        append_advice(builder, split, &beside, out);
    }
    append_swapped(split, out);
    return finding_add(builder, &finding);
}

// Find blocks that keep much of the heap resident at the end. Empty pages are the allocator's.
static MUST_USE enum err find_sparse(struct findings_builder *builder)
{
    const struct rss_breakdown_split *split = rss_breakdown_last(builder->breakdown);
    if (split == NULL || split->survivors.len == 0) {
        return ERR_OK;
    }
    const uint64_t heap_bytes = split->bytes[REC_PART_LIVE] + split->bytes[REC_PART_ROUNDING] +
                                split->bytes[REC_PART_KEPT] - split->empty_page_bytes;
    const uint64_t bytes = split->sparse_page_bytes;
    const struct rss_breakdown_survivor *most = &split->survivors.items[0];
    if (bytes < SPARSE_BYTES_MIN || bytes < heap_bytes / SPARSE_SHARE) {
        return ERR_OK;
    }
    struct finding finding = {.kind = FINDING_SPARSE,
                              .confidence = CONFIDENCE_MEDIUM,
                              .location = most->location,
                              .bytes = bytes - split->sparse_block_bytes,
                              .whole_bytes = split->rss_bytes,
                              .blocks = most->blocks,
                              .score = bytes - split->sparse_block_bytes,
                              .look = "-r"};
    struct strbuf *out = finding_begin(builder, &finding);
    strbuf_printf(out, "%s, about %s of the heap are almost empty pages: ",
                  profile_has_ended(builder->selection->profile) ? "At the end" : "At last",
                  format_bytes(bytes).text);
    strbuf_printf(out, "%s of blocks keep them resident. ",
                  format_bytes(split->sparse_block_bytes).text);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " made most of these: %s, ",
                  format_things(most->blocks, "block", "blocks").text);
    strbuf_printf(out, "%s in all, %s ", format_bytes(most->block_bytes).text,
                  most->blocks == 1 ? "keeps" : "keep");
    strbuf_printf(out, "%s of free memory from being returned.",
                  format_bytes(most->held_bytes).text);
    return finding_add(builder, &finding);
}

// What is known of a runtime alone is a warning; a finding needs memory.
static const struct unseen *most_mapped(const struct unseen_vec *list)
{
    const struct unseen *most = NULL;
    for (size_t i = 0; i < list->len; i++) {
        const struct unseen *here = &list->items[i];
        const bool counts = here->kind != UNSEEN_RUNTIME || here->is_mapped;
        most = counts && (most == NULL || here->mapped_bytes > most->mapped_bytes) ? here : most;
    }
    return most;
}

static MUST_USE enum err find_unseen(struct findings_builder *builder)
{
    const struct profile *profile = builder->selection->profile;
    CLEANUP(unseen_vec_release) struct unseen_vec unseen = {0};
    TRY(unseen_collect(profile, &unseen));
    const struct unseen *most = most_mapped(&unseen);
    if (most == NULL || (most->kind == UNSEEN_MAPPED && builder->out.items.len > 0)) {
        return ERR_OK; // the finding on RSS says who mapped the memory
    }
    struct finding finding = {
        .kind = FINDING_UNSEEN,
        .confidence = most->kind == UNSEEN_MAPPED ? CONFIDENCE_MEDIUM : CONFIDENCE_HIGH,
        .location =
            most->node != REC_NONE ? profile_call_site(profile, most->node).location : REC_NONE,
        .bytes = most->mapped_bytes,
        .whole_bytes = most->anonymous_bytes,
        .score = most->mapped_bytes,
        .look = "-r",
    };
    const struct rec_process *process = &profile->recording.processes[most->process];
    struct strbuf *out = finding_begin(builder, &finding);
    strbuf_printf(out, "cairn does not see most of the heap of %s: it ",
                  path_file_name(profile_string(profile, process->executable)));
    unseen_explain(most, out);
    strbuf_append_text(out, ".");
    return finding_add(builder, &finding);
}

enum err findings_add_memory(struct findings_builder *builder)
{
    TRY(find_rss(builder));
    TRY(find_sparse(builder));
    TRY(findings_add_huge(builder));
    return find_unseen(builder);
}
