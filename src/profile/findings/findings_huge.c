// SPDX-License-Identifier: MIT
// findings_huge: the finding on huge pages that hold much that was never written.
//
// It is stated where that is 8 MiB and an eighth of RSS or more, at the peak or at the end,
// whichever has more of it. Who has most of it and what keeps single pages there follow from its
// part.
#include <string.h>

#include "host/text/format.h"
#include "profile/findings/findings_builder.h"
#include "profile/tables/rss_allocators.h"

#define BLANK_BYTES_MIN (UINT64_C(8) << 20)

enum {
    BLANK_SHARE = 8
}; // an eighth of RSS

// The huge pages of a split.
struct huge {
    uint64_t bytes;
    uint64_t blank_bytes;
    const struct rss_breakdown_part *most; // with the most blank bytes; NULL: none
};

static struct huge huge_of(const struct rss_breakdown_split *split)
{
    struct huge huge = {0};
    for (size_t i = 0; split != NULL && i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        huge.bytes += part->huge_bytes;
        huge.blank_bytes += part->blank_bytes;
        huge.most =
            part->blank_bytes > (huge.most != NULL ? huge.most->blank_bytes : 0) ? part : huge.most;
    }
    return huge;
}

// Name who has most of it, and what keeps single pages there.
static void append_cure(const struct findings_builder *builder,
                        const struct rss_breakdown_part *most,
                        uint32_t location,
                        struct strbuf *out)
{
    const char *allocator = rss_allocator_name(builder->selection->profile, most->allocator);
    if (location != REC_NONE) {
        finding_append_site(builder, out, location);
        strbuf_printf(out, " mapped %s of it: madvise(MADV_NOHUGEPAGE) keeps single pages there.",
                      format_bytes(most->blank_bytes).text);
    } else if (rss_breakdown_is_heap(most->kind)) {
        strbuf_append_text(out, "Most of it is heap: ");
        strbuf_append_text(out, strstr(allocator, "jemalloc") != NULL
                                    ? "MALLOC_CONF=thp:never keeps single pages there."
                                : strstr(allocator, "mimalloc") != NULL
                                    ? "MIMALLOC_ALLOW_LARGE_OS_PAGES=0 keeps single pages there."
                                    : "prctl(PR_SET_THP_DISABLE) keeps single pages there, and so "
                                      "does GLIBC_TUNABLES without glibc.malloc.hugetlb.");
    } else {
        strbuf_append_text(out, "prctl(PR_SET_THP_DISABLE) keeps single pages.");
    }
}

enum err findings_add_huge(struct findings_builder *builder)
{
    const struct rss_breakdown_split *peak = rss_breakdown_peak(builder->breakdown);
    const struct rss_breakdown_split *last = rss_breakdown_last(builder->breakdown);
    const bool is_last = huge_of(last).blank_bytes > huge_of(peak).blank_bytes;
    const struct rss_breakdown_split *split = is_last ? last : peak;
    const struct huge huge = huge_of(split);
    if (huge.blank_bytes < BLANK_BYTES_MIN || huge.blank_bytes < split->rss_bytes / BLANK_SHARE) {
        return ERR_OK;
    }
    struct finding finding = {.kind = FINDING_HUGE,
                              .confidence = CONFIDENCE_MEDIUM,
                              .location =
                                  rss_breakdown_location(builder->selection->profile, huge.most),
                              .bytes = huge.blank_bytes,
                              .whole_bytes = split->rss_bytes,
                              .score = huge.blank_bytes,
                              .look = "-r"};
    struct strbuf *out = finding_begin(builder, &finding);
    strbuf_printf(out, "Huge pages took %s of RSS", format_bytes(huge.bytes).text);
    finding_append_moment(out, split->time_ms);
    strbuf_printf(out,
                  ". About %s of them hold only zeros, most likely because they were never "
                  "written. ",
                  format_bytes(huge.blank_bytes).text);
    append_cure(builder, huge.most, finding.location, out);
    return finding_add(builder, &finding);
}
