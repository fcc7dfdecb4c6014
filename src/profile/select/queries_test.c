// SPDX-License-Identifier: MIT
// Tests of the profile's queries on drawn recordings, with results counted by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/accuracy/coverage.h"
#include "profile/calls/bottom_up_tree.h"
#include "profile/calls/call_sites.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"
#include "profile/tables/summary.h"
#include "profile/time/cut_timeline.h"
#include "profile/time/timeline.h"
#include "recording/test_support/recording_text.h"

// allocations allocated_bytes frees freed_bytes temporary temporary_bytes peak_blocks peak_bytes
static const char server[] =
    "process server\n"
    "thread main\n"
    "app!main(app.c:1);app!load(app.c:10);libc!strdup 10 100 4 40 2 20 6 60 60\n"
    "@0 6 60 0 0 1\n"
    "@2 4 40 4 40 1\n"
    "app!main(app.c:1);app!load(app.c:10)=>push(vec.h:7)=>operator new(unsigned long)(new.h:1) "
    "5 500 5 500 5 500 0 0 100\n"
    "app!main(app.c:1);app!load(app.c:11) 1 7 0 0 0 0 1 7 7\n"
    "thread worker-1\n"
    "app!start;app!work(app.c:20);app!load(app.c:10);libc!strdup 3 30 3 30 0 0 0 0 30\n"
    "thread worker-2\n"
    "app!start;app!work(app.c:20);app!load(app.c:10);libc!strdup 2 20 0 0 0 0 2 20 20\n"
    "process helper\n"
    "thread main\n"
    "lib!spin(l.c:1);lib!spin(l.c:1);lib!spin(l.c:1) 8 64 8 64 0 0 0 0 64\n";

struct fixture {
    struct recording recording;
    struct profile *profile;
};

static void fixture_release(struct fixture *fixture)
{
    profile_close(fixture->profile);
    recording_release(&fixture->recording);
}

static void draw(const char *text, struct fixture *fixture)
{
    struct err_info info = {0};
    enum err problem = recording_from_text(text, &fixture->recording, &info);
    if (problem == ERR_OK) {
        fixture->recording.meta.state = REC_STATE_FINISHED;
        problem = profile_from_recording(&fixture->recording, NULL, NULL, &fixture->profile, &info);
    }
    if (problem != ERR_OK) {
        fail_msg("the drawing does not open: %s", info.text);
    }
}

static void
select_rows(const struct profile *profile, const struct filter *filter, struct selection *out)
{
    struct err_info info = {0};
    if (profile_select(profile, filter, out, &info) != ERR_OK) {
        fail_msg("select: %s", info.text);
    }
}

static uint64_t selected_cost(const struct profile *profile, struct filter filter, enum cost cost)
{
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(profile, &filter, &selection);
    struct summary summary;
    assert_int_equal(summary_build(&selection, &summary), ERR_OK);
    return costs_get(&summary.costs, cost);
}

static void totals_are_those_of_all_rows(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(fixture.profile, NULL, &selection);
    struct summary summary;
    assert_int_equal(summary_build(&selection, &summary), ERR_OK);
    static const struct {
        enum cost cost;
        uint64_t wanted;
    } wanted[] = {{COST_ALLOCATIONS, 29},  {COST_ALLOCATED_BYTES, 721},
                  {COST_FREES, 20},        {COST_FREED_BYTES, 634},
                  {COST_TEMPORARY, 7},     {COST_TEMPORARY_BYTES, 520},
                  {COST_PEAK_BYTES, 87},   {COST_PEAK_BLOCKS, 9},
                  {COST_LEAKED_BYTES, 87}, {COST_LEAKED_ALLOCATIONS, 9}};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        uint64_t value = costs_get(&summary.costs, wanted[i].cost);
        if (value != wanted[i].wanted) {
            fail_msg("%s is %lu, not %lu", cost_get_info(wanted[i].cost)->key, (unsigned long)value,
                     (unsigned long)wanted[i].wanted);
        }
    }
    assert_int_equal(summary.processes, 2);
    assert_int_equal(summary.threads, 4);
    assert_int_equal(summary.stacks, 5); // both workers share one
}

static void call_sites_skip_wrapper_frames_and_merge_threads(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(fixture.profile, NULL, &selection);
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    assert_int_equal(call_sites_build(&selection, &sites), ERR_OK);

    static const struct {
        const char *function;
        uint32_t line;
        uint64_t allocations;
        uint32_t stacks;
        bool is_inlined;
    } wanted[] = {{"load", 10, 15, 2, false}, // strdup by main, and by both workers
                  {"spin", 1, 8, 1, false},
                  {"push", 7, 5, 1, true},
                  {"load", 11, 1, 1, false}};
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    assert_int_equal(call_sites_ranked(&sites, COST_ALLOCATIONS, &ids), ERR_OK);
    assert_int_equal(ids.len, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ids.len; i++) {
        const struct call_site *site = &sites.sites.items[ids.items[i]];
        assert_string_equal(profile_location_function(fixture.profile, site->location),
                            wanted[i].function);
        assert_int_equal(profile_location_get(fixture.profile, site->location)->line,
                         wanted[i].line);
        assert_int_equal(costs_get(&site->costs, COST_ALLOCATIONS), wanted[i].allocations);
        assert_int_equal(site->stack_count, wanted[i].stacks);
        assert_int_equal(site->is_inlined, wanted[i].is_inlined);
    }
}

static void what_costs_nothing_is_not_ranked(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(fixture.profile, NULL, &selection);
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    assert_int_equal(call_sites_build(&selection, &sites), ERR_OK);
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    assert_int_equal(call_sites_ranked(&sites, COST_LEAKED_BYTES, &ids), ERR_OK);
    assert_int_equal(ids.len, 2);
    // load() app.c:10 has two stacks: main's and the workers'. Both leak.
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    assert_int_equal(call_sites_ranked_stacks(&sites, &sites.sites.items[ids.items[0]],
                                              COST_LEAKED_BYTES, &stacks),
                     ERR_OK);
    assert_int_equal(stacks.len, 2);
    assert_int_equal(costs_get(call_sites_costs(&sites, stacks.items[0]), COST_LEAKED_BYTES), 60);
    assert_int_equal(costs_get(call_sites_costs(&sites, stacks.items[1]), COST_LEAKED_BYTES), 20);
}

static void filters_compose(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    uint32_t server_pid = fixture.recording.processes[0].pid;
    char tid[16];
    (void)snprintf(tid, sizeof(tid), "%u", fixture.recording.threads[2].thread_id);
    const struct {
        struct filter filter;
        uint64_t allocations;
    } cases[] = {
        {{0}, 29},
        {{.function = "^load$"}, 21},
        {{.function = "strdup"}, 15},
        {{.function = "operator new"}, 5}, // inlined frames count too
        {{.function = "^(push|spin)$"}, 13},
        {{.function = "nobody"}, 0},
        {{.module = "libc"}, 15},
        {{.module = "lib"}, 23},
        {{.thread = "worker-1"}, 3},
        {{.thread = "worker-?"}, 5},
        {{.thread = "worker"}, 0},
        {{.thread = "main"}, 24},
        {{.thread = tid}, 2},
        {{.pid = server_pid}, 21},
        {{.pid = server_pid + 4711}, 0},
        {{.pid = server_pid, .thread = "main"}, 16},
        {{.pid = server_pid, .thread = "main", .module = "libc"}, 10},
        {{.pid = server_pid, .thread = "main", .module = "libc", .function = "work"}, 0},
        {{.thread = "worker-*", .module = "libc", .function = "work"}, 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t got = selected_cost(fixture.profile, cases[i].filter, COST_ALLOCATIONS);
        if (got != cases[i].allocations) {
            fail_msg("filter %zu selects %lu allocations, not %lu", i, (unsigned long)got,
                     (unsigned long)cases[i].allocations);
        }
    }
}

static void a_bad_regular_expression_is_reported(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    const struct filter filters[] = {{.function = "(("}, {.module = "[z-a]"}};
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        struct selection selection;
        struct err_info info = {0};
        assert_int_equal(profile_select(fixture.profile, &filters[i], &selection, &info),
                         ERR_INVALID);
        assert_non_null(strstr(info.text, "is not a regular expression"));
    }
}

static void groups_add_up_to_the_selection(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    const struct {
        enum group_by by;
        struct filter filter;
        size_t count;
        uint64_t allocations;
    } cases[] = {
        {GROUP_BY_PROCESS, {0}, 2, 29},
        {GROUP_BY_THREAD, {0}, 4, 29},
        {GROUP_BY_MODULE, {0}, 3, 29}, // libc has no call site, but is in the table
        {GROUP_BY_PROCESS, {.function = "load"}, 1, 21},
        {GROUP_BY_THREAD, {.function = "strdup"}, 3, 15},
        {GROUP_BY_MODULE, {.function = "strdup"}, 1, 15},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(selection_release) struct selection selection = {0};
        select_rows(fixture.profile, &cases[i].filter, &selection);
        CLEANUP(group_vec_release) struct group_vec groups = {0};
        assert_int_equal(groups_build(&selection, cases[i].by, &groups), ERR_OK);
        struct costs sum = {0};
        for (size_t g = 0; g < groups.len; g++) {
            costs_add(&sum, &groups.items[g].costs);
        }
        if (groups.len != cases[i].count ||
            costs_get(&sum, COST_ALLOCATIONS) != cases[i].allocations) {
            fail_msg("case %zu: %zu groups with %lu allocations", i, groups.len,
                     (unsigned long)costs_get(&sum, COST_ALLOCATIONS));
        }
    }
}

static void recursion_keeps_every_frame_of_a_stack(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(fixture.profile, &(struct filter){.function = "spin"}, &selection);
    CLEANUP(call_tree_release) struct call_tree tree = {0};
    CLEANUP(bottom_up_tree_release) struct bottom_up_tree other = {0};
    assert_int_equal(call_tree_build(&selection, CALL_TREE_BY_FUNCTION, false, &tree), ERR_OK);
    assert_int_equal(bottom_up_tree_build(&selection, CALL_TREE_BY_FUNCTION, NULL, false,
                                          &bottom_up_default_bounds, &other),
                     ERR_OK);
    const struct call_tree *trees[] = {&tree, &other.tree};
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        assert_int_equal(trees[i]->nodes.len, 4);
        assert_int_equal(trees[i]->nodes.items[trees[i]->row_nodes.items[0]].depth, 3);
        assert_int_equal(costs_get(tree_costs_total(&trees[i]->costs, 0), COST_ALLOCATIONS), 8);
    }
}

static void stacks_that_read_the_same_are_one(void **state)
{
    (void)state;
    // One source line at two addresses. A drawing identifies frames by text, so the builder makes
    // these.
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    assert_int_equal(recording_builder_init(&b), ERR_OK);
    uint32_t process;
    uint32_t thread;
    uint32_t module;
    assert_int_equal(recording_builder_process(&b, 7, "app", &process), ERR_OK);
    assert_int_equal(recording_builder_thread(&b, process, 7, "main", &thread), ERR_OK);
    assert_int_equal(recording_builder_module(&b, "app", &module), ERR_OK);
    const struct builder_symbol symbol = {.function = "load", .file = "app.c", .line = 3};
    for (uint64_t offset = 0; offset < 64; offset += 16) {
        uint32_t frame;
        uint32_t node;
        uint32_t row;
        // The last two have no name and stay separate, since they differ in address.
        uint32_t known = offset < 32 ? 1 : 0;
        assert_int_equal(recording_builder_frame(&b, module, offset, &symbol, known, &frame),
                         ERR_OK);
        assert_int_equal(recording_builder_node(&b, 0, frame, &node), ERR_OK);
        assert_int_equal(recording_builder_row(&b, thread, node, &row), ERR_OK);
        b.rows.items[row].allocations = 1;
    }
    CLEANUP(fixture_release) struct fixture fixture = {0};
    assert_int_equal(recording_builder_finish(&b, &fixture.recording), ERR_OK);
    fixture.recording.meta.state = REC_STATE_FINISHED;
    assert_int_equal(profile_from_recording(&fixture.recording, NULL, NULL, &fixture.profile, NULL),
                     ERR_OK);
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(fixture.profile, NULL, &selection);
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    assert_int_equal(call_sites_build(&selection, &sites), ERR_OK);
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    assert_int_equal(call_sites_ranked(&sites, COST_ALLOCATIONS, &ids), ERR_OK);
    assert_int_equal(ids.len, 3);
    assert_int_equal(sites.sites.items[ids.items[0]].stack_count, 1);
    assert_int_equal(costs_get(&sites.sites.items[ids.items[0]].costs, COST_ALLOCATIONS), 2);
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    assert_int_equal(coverage_build(fixture.profile, &coverage), ERR_OK);
    assert_int_equal(coverage.items[0].frames, 4);
    assert_int_equal(coverage.items[0].with_line, 2);
}

static void a_series_follows_the_filter(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    const struct {
        struct filter filter;
        uint64_t live_bytes[3];
    } cases[] = {{{0}, {60, 60, 60}}, {{.function = "spin"}, {0, 0, 0}}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(selection_release) struct selection selection = {0};
        select_rows(fixture.profile, &cases[i].filter, &selection);
        CLEANUP(timeline_release) struct timeline timeline = {0};
        assert_int_equal(timeline_build(&selection, &timeline), ERR_OK);
        assert_int_equal(timeline.points.len, 3);
        for (size_t at = 0; at < 3; at++) {
            assert_int_equal(timeline.points.items[at].live_bytes, cases[i].live_bytes[at]);
        }
    }
}

// Threads say what they did at different moments: here one frees in the first slice, and says so in
// the second one. No other part shows that, but a sum must not be above the peak.
static void a_part_is_never_above_the_peak(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw("process app\n"
         "thread main\n"
         "app!main(app.c:1);app!load(app.c:10) 1 100 1 100 0 0 0 0 100\n"
         "@0 1 100 0 0 0\n"
         "@1 0 0 1 100 0\n"
         "cohort 0 1 1 100\n"
         "app!main(app.c:1);app!save(app.c:20) 1 80 0 0 0 0 1 80 80\n"
         "@0 1 80 0 0 0\n"
         "cohort 0 - 1 80\n"
         "app!main(app.c:1);app!idle(app.c:30) 1 20 0 0 0 0 1 20 20\n"
         "@0 1 20 0 0 0\n"
         "cohort 0 - 1 20\n",
         &fixture);
    fixture.profile->recording.totals.peak_bytes = 120;
    const struct filter filter = {.function = "load|save"};
    CLEANUP(selection_release) struct selection selection = {0};
    CLEANUP(timeline_release) struct timeline timeline = {0};
    CLEANUP(cut_timeline_release) struct cut_timeline cut = {0};
    select_rows(fixture.profile, &filter, &selection);
    assert_int_equal(timeline_build(&selection, &timeline), ERR_OK);
    assert_int_equal(timeline.points.items[0].live_bytes, 120);
    assert_int_equal(timeline.points.items[1].live_bytes, 80);
    assert_int_equal(cut_timeline_build(&selection, &cut), ERR_OK);
    assert_int_equal(cut.points.items[0].live_bytes, 120);
    const struct filter first = {.has_range = true, .range = {0, 1, 15}};
    CLEANUP(selection_release) struct selection at_once = {0};
    struct summary summary;
    select_rows(fixture.profile, &first, &at_once);
    assert_int_equal(summary_build(&at_once, &summary), ERR_OK);
    assert_int_equal(summary.costs.values[COST_PEAK_BYTES], 120);
}

static void the_highest_rss_is_that_of_all_living_processes(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    struct rec_rss_sample samples[] = {
        {.time_ms = 0, .process = 0, .rss_bytes = 100},
        {.time_ms = 1, .process = 1, .rss_bytes = 50},   // 150
        {.time_ms = 10, .process = 0, .rss_bytes = 120}, // process 1 has ended: 120
    };
    struct profile *profile = fixture.profile;
    profile->recording.rss_samples = samples;
    profile->recording.rss_sample_count = ARRAY_LEN(samples);
    profile->recording.processes[1].end_ms = 5;
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(profile, NULL, &selection);
    struct summary summary;
    assert_int_equal(summary_build(&selection, &summary), ERR_OK);
    assert_int_equal(summary.peak_rss_bytes, 150);
}

static void an_exec_makes_no_other_process_under_a_filter_either(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(server, &fixture);
    struct recording *recording = &fixture.profile->recording;
    const struct {
        uint32_t epoch; // of the second image; 0: the pid was reused
        const char *module;
        uint64_t processes;
        uint64_t threads;
    } cases[] = {{1, "app|lib", 1, 3}, {0, "app|lib", 2, 4}, {1, "^lib$", 1, 1}, {1, "app", 1, 3}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        recording->processes[1].pid = recording->processes[0].pid;
        recording->processes[1].epoch = cases[i].epoch;
        recording->threads[0].thread_id = recording->processes[0].pid;
        recording->threads[3].thread_id = recording->processes[0].pid;
        const struct filter filter = {.module = cases[i].module};
        CLEANUP(selection_release) struct selection selection = {0};
        select_rows(fixture.profile, &filter, &selection);
        struct summary summary;
        assert_int_equal(summary_build(&selection, &summary), ERR_OK);
        assert_int_equal(summary.processes, cases[i].processes);
        assert_int_equal(summary.threads, cases[i].threads);
    }
}

static void an_empty_recording_answers_every_query(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw("", &fixture);
    CLEANUP(selection_release) struct selection selection = {0};
    select_rows(fixture.profile, NULL, &selection);
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(timeline_release) struct timeline timeline = {0};
    struct summary summary;
    assert_int_equal(call_sites_build(&selection, &sites), ERR_OK);
    assert_int_equal(timeline_build(&selection, &timeline), ERR_OK);
    assert_int_equal(summary_build(&selection, &summary), ERR_OK);
    assert_int_equal(sites.sites.len, 0);
    assert_int_equal(summary.stacks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_those_of_all_rows),
        cmocka_unit_test(a_part_is_never_above_the_peak),
        cmocka_unit_test(call_sites_skip_wrapper_frames_and_merge_threads),
        cmocka_unit_test(what_costs_nothing_is_not_ranked),
        cmocka_unit_test(filters_compose),
        cmocka_unit_test(a_bad_regular_expression_is_reported),
        cmocka_unit_test(groups_add_up_to_the_selection),
        cmocka_unit_test(recursion_keeps_every_frame_of_a_stack),
        cmocka_unit_test(stacks_that_read_the_same_are_one),
        cmocka_unit_test(a_series_follows_the_filter),
        cmocka_unit_test(the_highest_rss_is_that_of_all_living_processes),
        cmocka_unit_test(an_exec_makes_no_other_process_under_a_filter_either),
        cmocka_unit_test(an_empty_recording_answers_every_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
