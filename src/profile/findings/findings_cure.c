// SPDX-License-Identifier: MIT
#include "profile/findings/findings_cure.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/text/format.h"
#include "profile/tables/rss_allocators.h"

enum {
    MUCH_SHARE = 8,                // an eighth of the kept memory is much
    HARDLY_SHARE = 20,             // a twentieth is hardly any
    NAMED = 2,                     // allocators with a cure of their own
    LARGE_BLOCK_BYTES = 128 << 10, // glibc maps larger blocks apart, unless freed ones raised that
};

// What returns free memory to the kernel, by the allocator's name or how that of its file begins.
static const struct cure {
    const char *name;
    const char *call;
    enum growth_confidence confidence; // in the recorder's figure
    const char *lasting;               // a sentence; NULL: it depends (append_lasting)
} cures[] = {
    {"libc", "malloc_trim(0)", CONFIDENCE_HIGH, NULL},
    {"jemalloc", "mallctl(\"arena.4096.purge\")", CONFIDENCE_HIGH,
     " MALLOC_CONF=background_thread:true,dirty_decay_ms:1000 does the same all the time."},
    {"tcmalloc", "MallocExtension_ReleaseFreeMemory()", CONFIDENCE_MEDIUM, NULL},
    {"mimalloc", "mi_collect(true)", CONFIDENCE_LOW, NULL},
};

// An allocator that keeps memory.
struct keeper {
    const struct rss_allocator *allocator;
    const struct cure *cure; // NULL: none is known
    uint64_t released_bytes;
    bool is_known; // released_bytes is the recorder's figure
    bool is_only;  // no other allocator keeps memory
};

static const struct cure *cure_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(cures); i++) {
        const size_t length = strlen(cures[i].name);
        const char *at = strncmp(name, "lib", 3) == 0 && i > 0 ? name + 3 : name;
        if (strncmp(at, cures[i].name, length) == 0 && strchr("._-", at[length]) != NULL) {
            return &cures[i];
        }
    }
    return NULL;
}

// Older recordings know only the empty pages of all allocators together.
static struct keeper keeper_of(const struct rss_breakdown_split *split,
                               const struct rss_allocator *allocator,
                               bool is_only)
{
    const uint64_t empty_bytes = is_only ? split->empty_page_bytes : 0;
    return (struct keeper){
        .allocator = allocator,
        .cure = cure_of(allocator->name),
        .released_bytes = split->knows_release ? allocator->released_bytes : empty_bytes,
        .is_known = split->knows_release,
        .is_only = is_only,
    };
}

// Whether the free memory is where a trim does not reach: at the ends of glibc's arenas for
// threads.
static bool is_in_tops(const struct rss_breakdown_split *split, const struct keeper *keeper)
{
    return keeper->is_known && keeper->is_only && keeper->cure == &cures[0] &&
           split->empty_page_bytes >= keeper->released_bytes + keeper->allocator->kept_bytes / 2;
}

static const char *plural_holds(uint64_t count)
{
    return count == 1 ? "holds" : "hold";
}

// Append why the rest stays.
static void append_rest(const struct findings_builder *builder,
                        const struct rss_breakdown_split *split,
                        const struct keeper *keeper,
                        struct strbuf *out)
{
    const uint64_t kept_bytes = keeper->allocator->kept_bytes;
    const bool is_much =
        kept_bytes - min_u64(kept_bytes, keeper->released_bytes) >= kept_bytes / MUCH_SHARE;
    if (!is_much) {
        return;
    }
    if (is_in_tops(split, keeper)) {
        strbuf_printf(out,
                      ": it is free at the ends of %s of arenas for threads, which that call "
                      "leaves",
                      format_things(keeper->allocator->areas, "heap", "heaps").text);
    } else if (split->survivors.len > 0) {
        const struct rss_breakdown_survivor *most = &split->survivors.items[0];
        strbuf_printf(out, ": %s of ", format_things(most->blocks, "block", "blocks").text);
        finding_append_site(builder, out, most->location);
        strbuf_printf(out, " %s the largest part of the other pages", plural_holds(most->blocks));
    } else if (keeper->is_known) {
        strbuf_append_text(out, ": blocks in use are on the other pages");
    }
}

// Append what goes back of what one allocator keeps, and why the rest stays.
static void append_release(const struct findings_builder *builder,
                           const struct rss_breakdown_split *split,
                           const struct keeper *keeper,
                           struct strbuf *out)
{
    const uint64_t kept_bytes = keeper->allocator->kept_bytes;
    const bool is_hardly = keeper->released_bytes < kept_bytes / HARDLY_SHARE;
    if (!keeper->is_known && !keeper->is_only) {
        return;
    }
    if (keeper->cure == NULL) {
        if (keeper->released_bytes > kept_bytes / 2) {
            strbuf_printf(out, "about %s of it are pages without a live block, which it may return",
                          format_bytes(keeper->released_bytes).text);
        }
        return;
    }
    if (is_hardly && keeper->is_known) {
        strbuf_printf(out, "%s would return hardly any of it", keeper->cure->call);
    } else {
        strbuf_printf(out, "%s would return %s %s of it", keeper->cure->call,
                      keeper->cure->confidence == CONFIDENCE_LOW ? "up to" : "about",
                      format_bytes(keeper->released_bytes).text);
    }
    append_rest(builder, split, keeper, out);
}

// Whether freed blocks that large may have raised the size from which glibc maps them apart: then
// they are in the heap, below what is in use.
static bool has_large_blocks(const struct findings_builder *builder, uint64_t kept_bytes)
{
    const struct recording *recording = &builder->selection->profile->recording;
    uint64_t bytes = 0;
    for (size_t i = 0; i < recording->size_bucket_count; i++) {
        const struct rec_bucket *bucket = &recording->size_buckets[i];
        bytes += rec_bucket_low(bucket->bucket) >= LARGE_BLOCK_BYTES ? bucket->bytes : 0;
    }
    return bytes >= kept_bytes;
}

// Append what keeps less from the start, and what the effect of a release is worth.
static void append_lasting(const struct findings_builder *builder,
                           const struct rss_breakdown_split *split,
                           const struct keeper *keeper,
                           struct strbuf *out)
{
    const uint64_t kept_bytes = keeper->allocator->kept_bytes;
    if (keeper->cure == NULL || !keeper->is_known) {
        return;
    }
    if (keeper->released_bytes >= kept_bytes / 2) {
        strbuf_append_text(out, " The next such load takes it again.");
    }
    if (is_in_tops(split, keeper)) {
        strbuf_append_text(out, " With MALLOC_TRIM_THRESHOLD_=131072 arenas return it when it is "
                                "freed; MALLOC_ARENA_MAX=2 makes fewer of them.");
    } else if (keeper->cure == &cures[0] && keeper->released_bytes >= kept_bytes / 2 &&
               has_large_blocks(builder, kept_bytes)) {
        strbuf_append_text(out, " With MALLOC_TRIM_THRESHOLD_=131072 large blocks keep mappings of "
                                "their own, which end when they are freed.");
    } else if (keeper->cure->lasting != NULL && keeper->released_bytes >= kept_bytes / 2) {
        strbuf_append_text(out, keeper->cure->lasting);
    }
}

// Append the sentence on one of several allocators: ". NAME keeps 24.0 MiB of it; ...".
static void append_keeper(const struct findings_builder *builder,
                          const struct rss_breakdown_split *split,
                          const struct keeper *keeper,
                          struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf effect = {0};
    append_release(builder, split, keeper, &effect);
    if (!keeper->is_only) {
        strbuf_printf(out, "; %s keeps %s of it",
                      keeper->allocator->module == 0 ? "an unknown allocator"
                                                     : keeper->allocator->name,
                      format_bytes(keeper->allocator->kept_bytes).text);
    }
    if (effect.len > 0) {
        strbuf_append_text(out, keeper->is_only ? "; " : ": ");
        strbuf_append_text(out, strbuf_text(&effect));
    }
    out->failed |= effect.failed;
}

static int compare_kept(const void *left, const void *right)
{
    const struct rss_allocator *a = left;
    const struct rss_allocator *b = right;
    return a->kept_bytes > b->kept_bytes ? -1 : a->kept_bytes < b->kept_bytes;
}

enum err finding_append_cure(const struct findings_builder *builder,
                             const struct rss_breakdown_split *split,
                             struct strbuf *out,
                             enum growth_confidence *out_confidence)
{
    CLEANUP(rss_allocator_vec_release) struct rss_allocator_vec all = {0};
    TRY(rss_allocators_list(builder->selection->profile, split, &all));
    rss_allocator_vec_sort(&all, compare_kept);
    const size_t count = all.len;
    const bool is_only = count < 2 || all.items[1].kept_bytes == 0;
    *out_confidence = CONFIDENCE_LOW;
    for (size_t i = 0; i < count && i < NAMED; i++) {
        const struct keeper keeper = keeper_of(split, &all.items[i], is_only);
        const bool is_much =
            keeper.allocator->kept_bytes >= split->bytes[REC_PART_KEPT] / MUCH_SHARE;
        if (is_much) {
            append_keeper(builder, split, &keeper, out);
        }
        if (i == 0 && keeper.cure != NULL && keeper.is_known) {
            *out_confidence = keeper.cure->confidence;
        }
    }
    strbuf_append_char(out, '.');
    if (count > 0) {
        const struct keeper most = keeper_of(split, &all.items[0], is_only);
        append_lasting(builder, split, &most, out);
    }
    return ERR_OK;
}

// Return the cure of the only hooked allocator besides libc's. NULL: there is none, or another one.
static const struct cure *cure_of_hooks(const struct findings_builder *builder)
{
    const struct profile *profile = builder->selection->profile;
    const struct cure *found = NULL;
    for (size_t i = 0; i < profile->recording.hook_count; i++) {
        const char *name = profile_string(profile, profile->recording.hooks[i].allocator);
        const struct cure *cure = cure_of(name);
        if (name[0] == '\0' || cure == &cures[0] || cure == found) {
            continue;
        }
        if (cure == NULL || found != NULL) {
            return NULL;
        }
        found = cure;
    }
    return found;
}

// Whether an allocator may have a part: it is from before an attach.
static bool may_be_heap(const struct findings_builder *builder,
                        const struct rss_breakdown_part *part)
{
    const char *path = profile_string(builder->selection->profile, part->path);
    return part->kind == REC_PART_REST && (strncmp(path, "[mapped before", 14) == 0 ||
                                           strncmp(path, "[allocated before", 17) == 0);
}

// Say how much an attached process had before, if that is most of what is not explained.
static void append_earlier(const struct findings_builder *builder,
                           const struct rss_breakdown_split *split,
                           struct strbuf *out)
{
    uint64_t allocated = 0;
    uint64_t mapped = 0;
    bool may_be_free = false;
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        const char *path = profile_string(builder->selection->profile, part->path);
        if (part->kind == REC_PART_REST && strstr(path, "allocated before recording") != NULL) {
            allocated += part->rss_bytes;
            may_be_free = may_be_free || strstr(path, "or free") != NULL;
        } else if (part->kind == REC_PART_REST && strcmp(path, "[mapped before recording]") == 0) {
            mapped += part->rss_bytes;
        }
    }
    const bool is_mapped = mapped > allocated;
    const uint64_t bytes = is_mapped ? mapped : allocated;
    if (bytes > 0 && bytes >= split->bytes[REC_PART_REST] / 2) {
        strbuf_printf(out, "; %s of it was %s before recording", format_bytes(bytes).text,
                      is_mapped ? "mapped" : "allocated");
        strbuf_printf(out, "%s. Only a recording from the program's start shows by whom",
                      may_be_free && !is_mapped ? ", or is free" : "");
    }
}

// Name who contains an allocator whose functions have no names, if it may have most of that memory.
static void append_mapped(const struct findings_builder *builder,
                          const struct rss_breakdown_split *split,
                          struct strbuf *out)
{
    static const char mapped[] = "[mapped before recording";
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        const char *path = profile_string(builder->selection->profile, part->path);
        const char *owner = path + min_u64(strlen(mapped), strlen(path));
        owner += strspn(owner, "; ");
        if (part->kind == REC_PART_REST && strncmp(path, mapped, strlen(mapped)) == 0 &&
            strchr(owner, ' ') != NULL && part->rss_bytes >= split->bytes[REC_PART_REST] / 2) {
            strbuf_printf(out, "; %s of it was mapped before recording, and ",
                          format_bytes(part->rss_bytes).text);
            strbuf_append(out, owner, strcspn(owner, "]"));
        }
    }
}

void finding_append_unasked(const struct findings_builder *builder,
                            const struct rss_breakdown_split *split,
                            struct strbuf *out)
{
    const struct cure *cure = cure_of_hooks(builder);
    uint64_t bytes = 0;
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        bytes += may_be_heap(builder, part) ? part->rss_bytes : 0;
    }
    if (cure != NULL && bytes >= split->bytes[REC_PART_REST] / 2) {
        strbuf_printf(out, "; %s may have %s of it. How much of that is free is not known; ",
                      cure->name, format_bytes(bytes).text);
        strbuf_printf(out, "%s would return it", cure->call);
    } else {
        append_earlier(builder, split, out);
        append_mapped(builder, split, out);
    }
    strbuf_append_char(out, '.');
}
