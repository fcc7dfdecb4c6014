// SPDX-License-Identifier: MIT
// findings_memory: findings on what RSS consisted of, and on heaps that were not seen.
#include <string.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "profile/findings/findings_builder.h"
#include "profile/tables/rss_allocators.h"
#include "profile/tables/unseen.h"

#define MIB              (UINT64_C(1) << 20)
#define RSS_BYTES_MIN    (8 * MIB)
#define SPARSE_BYTES_MIN (4 * MIB)

enum {
    SPARSE_SHARE = 4,       // a quarter of the resident heap without its empty pages
    ESTIMATE_PER_SCORE = 4, // estimated bytes that count as one
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

// What returns empty pages to the kernel, by the allocator's name or how that of its file begins.
static const struct cure {
    const char *name;
    const char *words;
    bool is_measured; // the call returns just these pages
} cures[] = {
    {"libc", "malloc_trim(0) would return", true},
    {"jemalloc", "jemalloc returns by and by (dirty_decay_ms, background_thread)", false},
    {"libjemalloc", "jemalloc returns by and by (dirty_decay_ms, background_thread)", false},
    {"tcmalloc", "MallocExtension_ReleaseFreeMemory() would return", false},
    {"libtcmalloc", "MallocExtension_ReleaseFreeMemory() would return", false},
    {"mimalloc", "mi_collect(true) would return", false},
    {"libmimalloc", "mi_collect(true) would return", false},
};

// The allocators of a split that keep memory.
struct keepers {
    struct rss_allocator_vec all;     // owned; by what they keep is `most`
    const struct rss_allocator *most; // keeps the most; NULL: none does
    size_t count;                     // that keep something
};

static void keepers_release(struct keepers *keepers)
{
    rss_allocator_vec_release(&keepers->all);
}

static MUST_USE enum err find_keepers(const struct profile *profile,
                                      const struct rss_breakdown_split *split,
                                      struct keepers *out)
{
    TRY(rss_allocators_list(profile, split, &out->all));
    for (size_t i = 0; i < out->all.len; i++) {
        const struct rss_allocator *allocator = out->all.items + i;
        out->count += allocator->kept_bytes > 0;
        if (allocator->kept_bytes > (out->most != NULL ? out->most->kept_bytes : 0)) {
            out->most = allocator;
        }
    }
    return ERR_OK;
}

// Return what helps if one allocator keeps all, NULL if none is known.
static const struct cure *cure_of(const struct keepers *keepers)
{
    const struct cure *cure = NULL;
    for (size_t i = 0; keepers->count == 1 && i < ARRAY_LEN(cures); i++) {
        const size_t length = strlen(cures[i].name);
        const char *name = keepers->most->name;
        const bool is_name =
            strncmp(name, cures[i].name, length) == 0 && strchr("._-", name[length]) != NULL;
        cure = is_name ? cures + i : cure;
    }
    return cure;
}

// Whether what the allocator keeps is known by the page, and would go back by a call.
static bool is_measured(const struct keepers *keepers,
                        const struct rss_breakdown_split *split,
                        uint32_t largest)
{
    const struct cure *cure = cure_of(keepers);
    return largest == REC_PART_KEPT && cure != NULL && cure->is_measured &&
           (split->flags & REC_SNAPSHOT_ESTIMATED) == 0 &&
           split->empty_page_bytes > split->bytes[REC_PART_KEPT] / 2;
}

// Say what of the kept memory would go back, or whose blocks prevent that.
static void append_cure(const struct findings_builder *builder,
                        const struct keepers *keepers,
                        const struct rss_breakdown_split *split,
                        struct strbuf *out)
{
    const struct cure *cure = cure_of(keepers);
    const uint64_t kept_bytes = split->bytes[REC_PART_KEPT];
    if (keepers->count > 1) {
        strbuf_append_text(out, "; ");
        strbuf_append_text(out, keepers->most->module == 0 ? "an unknown allocator"
                                                           : keepers->most->name);
        strbuf_printf(out, " keeps %s of it", format_bytes(keepers->most->kept_bytes).text);
    }
    const bool is_pinned = split->survivors.len > 0 && split->empty_page_bytes < kept_bytes / 8;
    if (cure != NULL && is_pinned) {
        const struct rss_breakdown_survivor *most = &split->survivors.items[0];
        strbuf_printf(out, "; %s about %s of it: ", cure->words,
                      format_bytes(split->empty_page_bytes).text);
        strbuf_printf(out, "%s of ", format_things(most->blocks, "block", "blocks").text);
        finding_append_site(builder, out, most->location);
        strbuf_printf(out, " %s the largest part of the other pages",
                      most->blocks == 1 ? "holds" : "hold");
    } else if (cure != NULL && split->empty_page_bytes > kept_bytes / 2) {
        strbuf_printf(out, "; %s about %s of it", cure->words,
                      format_bytes(split->empty_page_bytes).text);
    } else if (split->empty_page_bytes > kept_bytes / 2) {
        strbuf_printf(out, "; about %s of it are pages without a live block, which it may return",
                      format_bytes(split->empty_page_bytes).text);
    }
}

static MUST_USE enum err find_rss(struct findings_builder *builder)
{
    static const uint32_t kinds[] = {REC_PART_ROUNDING, REC_PART_KEPT,   REC_PART_MAPPED,
                                     REC_PART_STACK,    REC_PART_SHARED, REC_PART_REST};
    const struct rss_breakdown_split *split = rss_breakdown_peak(builder->breakdown);
    uint64_t other_bytes = 0;
    uint32_t largest = REC_PART_REST;
    for (size_t i = 0; split != NULL && i < ARRAY_LEN(kinds); i++) {
        other_bytes += split->bytes[kinds[i]];
        largest = split->bytes[kinds[i]] > split->bytes[largest] ? kinds[i] : largest;
    }
    if (split == NULL || other_bytes < RSS_BYTES_MIN || other_bytes < split->bytes[REC_PART_LIVE]) {
        return ERR_OK;
    }
    CLEANUP(keepers_release) struct keepers keepers = {0};
    TRY(find_keepers(builder->selection->profile, split, &keepers));
    const bool is_estimate =
        rss_breakdown_is_estimate(split, largest) && !is_measured(&keepers, split, largest);
    struct mapper mapper;
    TRY(find_mapper(builder->selection->profile, split, largest, &mapper));
    struct finding finding = {.kind = FINDING_RSS,
                              .confidence = is_estimate ? CONFIDENCE_LOW : CONFIDENCE_HIGH,
                              .location = mapper.location,
                              .bytes = split->bytes[largest],
                              .whole_bytes = split->rss_bytes,
                              .score = rss_breakdown_is_estimate(split, largest)
                                           ? other_bytes / ESTIMATE_PER_SCORE
                                           : other_bytes,
                              .look = "-r"};
    struct strbuf *out = finding_begin(builder, &finding);
    strbuf_printf(out, "RSS was %s", format_bytes(split->rss_bytes).text);
    if (split->time_ms > 0) {
        strbuf_printf(out, " after %s", format_duration(split->time_ms * 1000000).text);
    }
    strbuf_printf(out, ". Live heap blocks took %s of it. The largest other part is \"%s\": ",
                  finding_format_bytes(builder, split->bytes[REC_PART_LIVE]).text,
                  rss_breakdown_kind(largest)->phrase);
    strbuf_append_text(out, format_bytes(finding.bytes).text);
    if (finding.location != REC_NONE) {
        strbuf_append_text(out, "; ");
        finding_append_site(builder, out, finding.location);
        strbuf_printf(out, " mapped %s of it", format_bytes(mapper.bytes).text);
    }
    if (largest == REC_PART_KEPT) {
        append_cure(builder, &keepers, split, out);
    }
    strbuf_append_char(out, '.');
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
    return find_unseen(builder);
}
