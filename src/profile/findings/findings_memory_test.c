// SPDX-License-Identifier: MIT
// Tests of the findings on resident memory: what allocators keep, other memory, huge pages, and the
// cure of each.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/test_support/drawn_findings.h"

static const struct keeping {
    const char *allocator;
    uint64_t empty_bytes;
    uint64_t released_bytes;
    bool knows_release; // else it is an older recording
    bool has_survivors;
    enum growth_confidence confidence;
    const char *words; // after its size
    const char *other; // allocator, which keeps 16 MiB of them
} keepings[] = {
    {"libc.so.6", 38 << 20, 20 << 20, true, false, CONFIDENCE_HIGH,
     "; libc.so.6 keeps 24.0 MiB of it: malloc_trim(0) would return about 20.0 MiB of it: blocks "
     "in use are on the other pages; libjemalloc.so.2 keeps 16.0 MiB of it: "
     "mallctl(\"arena.4096.purge\") would return hardly any of it: blocks in use are on the other "
     "pages. The next such load takes it again.",
     "libjemalloc.so.2"},
    {"libc.so.6", 38 << 20, 0, false, false, CONFIDENCE_LOW,
     "; an unknown allocator keeps 24.0 MiB of it; libjemalloc.so.2 keeps 16.0 MiB of it.",
     "libjemalloc.so.2"},
    {"libc.so.6", 38 << 20, 38 << 20, true, false, CONFIDENCE_HIGH,
     "; malloc_trim(0) would return about 38.0 MiB of it. The next such load takes it again.",
     NULL},
    {"libc.so.6", 38 << 20, 0, false, false, CONFIDENCE_LOW,
     "; malloc_trim(0) would return about 38.0 MiB of it.", NULL},
    {"libc.so.6", 1 << 20, 1 << 20, true, true, CONFIDENCE_HIGH,
     "; malloc_trim(0) would return hardly any of it: 800 blocks of load (a.c:7) hold the largest "
     "part of the other pages.",
     NULL},
    {"libc.so.6", 39 << 20, 1 << 20, true, false, CONFIDENCE_HIGH,
     "; malloc_trim(0) would return hardly any of it: it is free at the ends of 8 heaps of arenas "
     "for threads, which that call leaves. With MALLOC_TRIM_THRESHOLD_=131072 arenas return it "
     "when it is freed; MALLOC_ARENA_MAX=2 makes fewer of them.",
     NULL},
    {"libjemalloc.so.2", 38 << 20, 30 << 20, true, false, CONFIDENCE_HIGH,
     "; mallctl(\"arena.4096.purge\") would return about 30.0 MiB of it: blocks in use are on the "
     "other pages. The next such load takes it again. "
     "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000 does the same all the time.",
     NULL},
    {"libtcmalloc.so.4", 38 << 20, 38 << 20, true, false, CONFIDENCE_MEDIUM,
     "; MallocExtension_ReleaseFreeMemory() would return about 38.0 MiB of it. The next such load "
     "takes it again.",
     NULL},
    {"libmimalloc.so.2", 38 << 20, 38 << 20, true, false, CONFIDENCE_LOW,
     "; mi_collect(true) would return up to 38.0 MiB of it. The next such load takes it again.",
     NULL},
    {"other", 38 << 20, 38 << 20, true, false, CONFIDENCE_LOW,
     "; about 38.0 MiB of it are pages without a live block, which it may return.", NULL},
};

// The allocator of the first process keeps 40 MiB of 52.
static void what_an_allocator_keeps_has_a_cure(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(keepings); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        drawn_profile_open("libc.so.6;libjemalloc.so.2;libtcmalloc.so.4;libmimalloc.so.2;other;"
                           "load(a.c:7) 1 8 0 0 0 0 1 8 8\n",
                           &drawn);
        const struct recording *recording = &drawn.profile->recording;
        recording->processes[0].allocator = string_of(drawn.profile, keepings[i].allocator);
        const bool has_other = keepings[i].other != NULL;
        struct rss_breakdown_part parts[] = {
            {.kind = REC_PART_KEPT,
             .node = REC_NONE,
             .rss_bytes = (has_other ? 24 : 40) << 20,
             .released_bytes = keepings[i].released_bytes,
             .areas = 8,
             .allocator = i % 2 == 0 ? string_of(drawn.profile, keepings[i].allocator)
                                     : 0}, // as in old recordings
            {.kind = REC_PART_KEPT,
             .node = REC_NONE,
             .rss_bytes = 16 << 20,
             .allocator = has_other ? string_of(drawn.profile, keepings[i].other) : 0}};
        struct rss_breakdown_survivor survivor = {
            .location = profile_call_site(drawn.profile, recording->rows[0].node).location,
            .blocks = 800};
        struct rss_breakdown_split split = {
            .flags = REC_SNAPSHOT_PEAK,
            .knows_release = keepings[i].knows_release,
            .rss_bytes = 52 << 20,
            .bytes = {[REC_PART_KEPT] = 40 << 20, [REC_PART_LIVE] = 12 << 20},
            .empty_page_bytes = keepings[i].empty_bytes,
            .parts = {.items = parts, .len = 1 + (size_t)has_other},
            .survivors = {.items = &survivor, .len = keepings[i].has_survivors}};
        const struct rss_breakdown breakdown = {.splits = {.items = &split, .len = 1}};
        struct summary summary;
        assert_int_equal(summary_build(&drawn.selection, &summary), ERR_OK);
        assert_int_equal(findings_build(&drawn.selection, &summary, &breakdown, &findings), ERR_OK);
        const struct finding *found = find(&findings, FINDING_RSS);
        assert_non_null(found);
        char wanted[800];
        (void)snprintf(wanted, sizeof(wanted), // fits
                       "RSS was 52.0 MiB. Live heap blocks took 12.0 MiB of it. The largest other "
                       "part is \"kept by the allocator\": 40.0 MiB%s",
                       keepings[i].words);
        assert_string_equal(findings_sentence(&findings, found), wanted);
        assert_int_equal(found->confidence, keepings[i].confidence);
    }
}

static const struct {
    uint32_t kind;
    const char *path;
    uint64_t swap_bytes;
    const char *words; // after its size; NULL: no finding
} others[] = {
    {REC_PART_FILE, "data.idx", 0,
     "; data.idx has 40.0 MiB of it. The kernel takes such pages when memory is short; "
     "madvise(MADV_DONTNEED) or a smaller mapping gives them up at once."},
    {REC_PART_FILE, "libbig.so.2", 0, NULL}, // code is the program itself
    {REC_PART_FILE, "/lib/2/tool", 0, NULL}, // started as /bin/tool
    {REC_PART_STACK, "", 0,
     ", of 8 stacks. A stack keeps what its deepest call touched: fewer threads, or smaller "
     "frames, keep less."},
    {REC_PART_REST, "[mapped before recording a.node contains mimalloc]", 0,
     "; 40.0 MiB of it was mapped before recording, and a.node contains mimalloc."},
    {REC_PART_REST, "[unrecorded heap]", 0, "."},
    {REC_PART_REST, "[mapped before recording]", 0,
     "; 40.0 MiB of it was mapped before recording. Only a recording from the program's start "
     "shows by whom."},
    {REC_PART_REST, "[heap of glibc, allocated before recording]", 0,
     "; 40.0 MiB of it was allocated before recording. Only a recording from the program's "
     "start shows by whom."},
    {REC_PART_REST, "[allocated before recording, or free]", 0,
     "; 40.0 MiB of it was allocated before recording, or is free. Only a recording from the "
     "program's start shows by whom."},
    {REC_PART_SHARED, "", 16 << 20,
     ". 16.0 MiB more are swapped out, most of it \"shared memory\": RSS grows again when it "
     "is used."},
};

// What is beside the heap, by its largest part: a drawn split of 64 MiB in which it has 40.
static void other_memory_has_its_cure(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        drawn_profile_open("data.idx;libbig.so.2;/lib/2/tool;/bin/tool;[mapped before recording];"
                           "[mapped before recording a.node contains mimalloc];"
                           "[heap of glibc, allocated before recording];"
                           "[allocated before recording, or free];[unrecorded heap];load(a.c:7) "
                           "1 8 0 0 0 0 1 8 8\n",
                           &drawn);
        struct rec_module tool = {.path = string_of(drawn.profile, "/bin/tool")};
        drawn.profile->recording.modules = &tool;
        drawn.profile->recording.module_count = 1;
        struct rss_breakdown_part part = {
            .kind = others[i].kind,
            .node = REC_NONE,
            .areas = 8,
            .rss_bytes = 40 << 20,
            .swap_bytes = others[i].swap_bytes,
            .path = others[i].path[0] != '\0' ? string_of(drawn.profile, others[i].path) : 0};
        struct rss_breakdown_split split = {.flags = REC_SNAPSHOT_PEAK,
                                            .rss_bytes = 64 << 20,
                                            .swap_bytes = others[i].swap_bytes,
                                            .parts = {.items = &part, .len = 1}};
        split.bytes[REC_PART_FILE] = 48 << 20; // of code, but for the part
        split.bytes[others[i].kind] = 40 << 20;
        const struct rss_breakdown breakdown = {.splits = {.items = &split, .len = 1}};
        struct summary summary;
        assert_int_equal(summary_build(&drawn.selection, &summary), ERR_OK);
        assert_int_equal(findings_build(&drawn.selection, &summary, &breakdown, &findings), ERR_OK);
        const struct finding *found = find(&findings, FINDING_RSS);
        const bool has_code = others[i].kind != REC_PART_FILE;
        if (others[i].words == NULL) {
            assert_null(found);
            continue;
        }
        assert_non_null(found);
        const char *words = strstr(findings_sentence(&findings, found), "40.0 MiB");
        assert_non_null(words);
        assert_string_equal(words + strlen("40.0 MiB"), others[i].words);
        assert_int_equal(strstr(findings_sentence(&findings, found),
                                ", and code of the program and its libraries 48.0 MiB.") != NULL,
                         has_code);
    }
}

// Note that a function of an allocator was hooked in a module. The recording's owner has its hooks.
static void
add_hook(struct profile *profile, struct rec_hook *hook, const char *module, const char *allocator)
{
    *hook = (struct rec_hook){.module = string_of(profile, module),
                              .allocator = string_of(profile, allocator)};
    profile->recording.hooks = hook;
    profile->recording.hook_count = 1;
}

// A part of 40 MiB of a drawn split of 64 MiB is in huge pages.
static void huge_pages_without_content_are_stated(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        const char *allocator;
        bool is_mapped; // by load
        uint64_t blank_bytes;
        const char *words;  // NULL: no finding
        const char *inside; // the allocator whose functions were hooked in the module; NULL: none
    } cases[] = {
        {REC_PART_MAPPED, "", true, 32 << 20,
         "load (a.c:7) mapped 32.0 MiB of it: madvise(MADV_NOHUGEPAGE) keeps single pages there.",
         NULL},
        {REC_PART_LIVE, "libc.so.6", false, 32 << 20,
         "Most of it is heap: prctl(PR_SET_THP_DISABLE) keeps single pages there, and so does "
         "GLIBC_TUNABLES without glibc.malloc.hugetlb.",
         NULL},
        {REC_PART_KEPT, "libjemalloc.so.2", false, 32 << 20,
         "Most of it is heap: MALLOC_CONF=thp:never keeps single pages there.", NULL},
        {REC_PART_KEPT, "libmimalloc.so.2", false, 32 << 20,
         "Most of it is heap: MIMALLOC_ALLOW_LARGE_OS_PAGES=0 keeps single pages there.", NULL},
        {REC_PART_LIVE, "server", false, 32 << 20,
         "Most of it is heap: MALLOC_CONF=thp:never keeps single pages there.", "jemalloc"},
        {REC_PART_REST, "", false, 32 << 20, "prctl(PR_SET_THP_DISABLE) keeps single pages.", NULL},
        {REC_PART_MAPPED, "", true, (8 << 20) - 1, NULL, NULL}, // of 64 MiB
        {REC_PART_MAPPED, "", true, 0, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        drawn_profile_open(
            "libc.so.6;libjemalloc.so.2;libmimalloc.so.2;server;jemalloc;load(a.c:7) 1 8 0 0 0 0 1 "
            "8 8\n",
            &drawn);
        const struct recording *recording = &drawn.profile->recording;
        const char *allocator = cases[i].allocator;
        struct rec_hook hook;
        if (cases[i].inside != NULL) {
            add_hook(drawn.profile, &hook, allocator, cases[i].inside);
        }
        struct rss_breakdown_part parts[] = {
            {.kind = REC_PART_STACK, .node = REC_NONE, .rss_bytes = 1 << 20},
            {.kind = cases[i].kind,
             .node = cases[i].is_mapped ? recording->rows[0].node : REC_NONE,
             .rss_bytes = 40 << 20,
             .huge_bytes = 40 << 20,
             .blank_bytes = cases[i].blank_bytes,
             .allocator = allocator[0] != '\0' ? string_of(drawn.profile, allocator) : 0}};
        struct rss_breakdown_split split = {.flags = REC_SNAPSHOT_PEAK,
                                            .time_ms = 2000,
                                            .rss_bytes = 64 << 20,
                                            .parts = {.items = parts, .len = ARRAY_LEN(parts)}};
        const struct rss_breakdown breakdown = {.splits = {.items = &split, .len = 1}};
        struct summary summary;
        assert_int_equal(summary_build(&drawn.selection, &summary), ERR_OK);
        assert_int_equal(findings_build(&drawn.selection, &summary, &breakdown, &findings), ERR_OK);
        const struct finding *found = find(&findings, FINDING_HUGE);
        if (cases[i].words == NULL) {
            assert_null(found);
            continue;
        }
        assert_non_null(found);
        char wanted[400];
        (void)snprintf(wanted, sizeof(wanted), // fits
                       "Huge pages took 40.0 MiB of RSS after 2.00 s. About 32.0 MiB of them hold "
                       "only zeros, most likely because they were never written. %s",
                       cases[i].words);
        assert_string_equal(findings_sentence(&findings, found), wanted);
        assert_int_equal(found->location != REC_NONE, cases[i].is_mapped);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_allocator_keeps_has_a_cure),
        cmocka_unit_test(other_memory_has_its_cure),
        cmocka_unit_test(huge_pages_without_content_are_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
