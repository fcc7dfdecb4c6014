// SPDX-License-Identifier: MIT
// Tests of deferred_symbols: a recording of this program without names gets them when it is opened,
// and only then.
#include "profile/model/deferred_symbols.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/model/profile.h"
#include "recording/write/recording_builder.h"

static NOINLINE int known_function(int number)
{
    __asm__ volatile("");
    return number + 1;
}

static int take_first_base(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(uint64_t *)out = info->dlpi_addr;
    return 1; // the first entry is the program itself
}

// The offset of known_function in this program's file.
static uint64_t known_offset(void)
{
    uint64_t base = 0;
    (void)dl_iterate_phdr(take_first_base, &base); // the result is the callback's
    return (uint64_t)(uintptr_t)known_function - base;
}

static void own_path(char *out, size_t size)
{
    ssize_t len = readlink("/proc/self/exe", out, size - 1);
    assert_true(len > 0);
    out[len] = '\0';
}

// Make a recording with one frame in this program, whose caller is code outside any file.
static void make_recording(enum rec_state state,
                           const char *build_id,
                           const struct builder_symbol *symbol,
                           struct recording *out)
{
    char path[4096];
    own_path(path, sizeof(path));
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    uint32_t process;
    uint32_t thread;
    uint32_t module;
    uint32_t frames[2];
    uint32_t node;
    uint32_t row;
    assert_int_equal(recording_builder_init(&b), ERR_OK);
    assert_int_equal(recording_builder_process(&b, 1, path, &process), ERR_OK);
    assert_int_equal(recording_builder_thread(&b, process, 1, "main", &thread), ERR_OK);
    assert_int_equal(recording_builder_module(&b, path, &module), ERR_OK);
    assert_int_equal(recording_builder_string(&b, build_id, &b.modules.items[module].build_id),
                     ERR_OK);
    assert_int_equal(recording_builder_frame(&b, REC_NONE, 0x1234, NULL, 0, &frames[0]), ERR_OK);
    assert_int_equal(
        recording_builder_frame(&b, module, known_offset(), symbol, symbol != NULL, &frames[1]),
        ERR_OK);
    b.frames.items[frames[1]].flags = REC_FRAME_EXACT_PC;
    assert_int_equal(recording_builder_node(&b, 0, frames[0], &node), ERR_OK);
    assert_int_equal(recording_builder_node(&b, node, frames[1], &node), ERR_OK);
    assert_int_equal(recording_builder_row(&b, thread, node, &row), ERR_OK);
    b.rows.items[row].allocations = 1;
    b.meta.state = state;
    assert_int_equal(recording_builder_finish(&b, out), ERR_OK);
}

static void names_are_found_where_there_are_none(void **state)
{
    (void)state;
    static const struct builder_symbol recorded = {.function = "recorded", .file = "r.c"};
    static const struct {
        enum rec_state state;
        const char *build_id;
        const struct builder_symbol *symbol;
        const char *function;
        bool has_advice;
    } cases[] = {
        {REC_STATE_RUNNING, "", NULL, "known_function", false},
        {REC_STATE_FINISHED, "", NULL, "known_function", false}, // another tool's, without names
        {REC_STATE_RUNNING, "00112233445566778899", NULL, "",
         true}, // another build: no wrong names
        {REC_STATE_RUNNING, "no hexadecimal", NULL, "known_function", false},
        {REC_STATE_FINISHED, "", &recorded, "recorded", false},
        {REC_STATE_RUNNING, "", &recorded, "recorded", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(recording_release) struct recording recording = {0};
        make_recording(cases[i].state, cases[i].build_id, cases[i].symbol, &recording);
        CLEANUP(profile_closep) struct profile *profile = NULL;
        assert_int_equal(profile_from_recording(&recording, NULL, NULL, &profile, NULL), ERR_OK);
        struct call_site_location site = profile_call_site(profile, recording.rows[0].node);
        const char *function = profile_location_function(profile, site.location);
        const bool is_right = cases[i].function[0] != '\0'
                                  ? strcmp(function, cases[i].function) == 0
                                  : strstr(function, "+0x") != NULL;
        if (!is_right) {
            fail_msg("case %zu: the function is \"%s\", not \"%s\"", i, function,
                     cases[i].function);
        }
        if ((profile_module_advice(profile, 0)[0] != '\0') != cases[i].has_advice) {
            fail_msg("case %zu: the advice is \"%s\"", i, profile_module_advice(profile, 0));
        }
    }
}

static void a_finished_recording_is_believed(void **state)
{
    (void)state;
    static const struct builder_symbol recorded = {.function = "recorded", .file = "r.c"};
    CLEANUP(recording_release) struct recording recording = {0};
    make_recording(REC_STATE_FINISHED, "", &recorded, &recording);
    CLEANUP(deferred_symbols_release) struct deferred_symbols symbols = {0};
    assert_int_equal(deferred_symbols_find(&recording, NULL, NULL, NULL, &symbols), ERR_OK);
    assert_int_equal(symbols.chains.len, 0);
    assert_int_equal(symbols.modules.len, 0);
}

// A callback that cancels repeatedly.
struct patience {
    uint32_t left; // 0: cancels
    uint32_t given_up;
};

static bool is_patient(void *context)
{
    struct patience *patience = context;
    if (patience->left == 0) {
        patience->given_up++;
        return false;
    }
    patience->left--;
    return true;
}

static void compare_chains(const struct deferred_symbols *want, const struct deferred_symbols *got)
{
    assert_int_equal(want->chains.len, got->chains.len);
    for (size_t i = 0; i < want->chains.len; i++) {
        const struct symbol_chain a = want->chains.items[i];
        const struct symbol_chain b = got->chains.items[i];
        assert_int_equal(a.count, b.count);
        for (uint32_t k = 0; k < a.count; k++) {
            const struct symbol_frame *x = want->frames.items + a.first + k;
            const struct symbol_frame *y = got->frames.items + b.first + k;
            assert_string_equal(string_table_get(&want->texts, x->function),
                                string_table_get(&got->texts, y->function));
            assert_string_equal(string_table_get(&want->texts, x->file),
                                string_table_get(&got->texts, y->file));
            assert_int_equal(x->line, y->line);
            assert_int_equal(x->is_inlined, y->is_inlined);
        }
    }
}

// Name `code` in steps: each has more of it, and most are cancelled on the way.
static void
name_in_steps(const struct late_code *code, uint64_t keep_bytes, struct deferred_symbols *out)
{
    struct patience patience = {0};
    struct deferred_lookup *lookup = NULL;
    const struct deferred_lookup_options options = {
        .keep_bytes = keep_bytes, .go_on = is_patient, .context = &patience};
    assert_int_equal(deferred_lookup_new(&options, &lookup), ERR_OK);
    for (size_t end = 1; end < code->frame_count; end += end / 3 + 1) {
        struct late_code part = *code;
        part.frame_count = end;
        part.module_count = end > 2 ? code->module_count : 1;
        patience.left = (uint32_t)end % 7;
        const enum err err = deferred_lookup_step(lookup, &part, NULL);
        assert_true(err == ERR_OK || err == ERR_CANCELLED);
    }
    assert_true(patience.given_up > 0);
    patience.left = UINT32_MAX;
    assert_int_equal(deferred_lookup_step(lookup, code, NULL), ERR_OK);
    deferred_lookup_take(lookup, out);
    deferred_lookup_free(lookup);
}

static void steps_find_what_one_finds(void **state)
{
    (void)state;
    enum {
        FRAMES = 400,
        STEP_BYTES = 24
    };
    static const uint64_t kept[] = {0, UINT64_MAX};
    char path[4096];
    own_path(path, sizeof(path));
    const struct late_code_module modules[] = {{.path = path, .build_id = ""},
                                               {.path = "/nowhere/at/all", .build_id = ""}};
    struct rec_frame frames[FRAMES];
    for (uint64_t i = 0; i < FRAMES; i++) {
        frames[i] = (struct rec_frame){.module = i % 5 == 2 ? 1 : 0,
                                       .offset = known_offset() + i * STEP_BYTES};
    }
    frames[0].module = 0; // a later step adds the second module
    const struct late_code code = {.modules = modules,
                                   .module_count = ARRAY_LEN(modules),
                                   .frames = frames,
                                   .frame_count = FRAMES};
    CLEANUP(deferred_symbols_release) struct deferred_symbols whole = {0};
    struct deferred_lookup *lookup = NULL;
    assert_int_equal(deferred_lookup_new(&(struct deferred_lookup_options){0}, &lookup), ERR_OK);
    assert_int_equal(deferred_lookup_step(lookup, &code, NULL), ERR_OK);
    deferred_lookup_take(lookup, &whole);
    deferred_lookup_free(lookup);
    assert_true(whole.chains.items[0].count > 0);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        CLEANUP(deferred_symbols_release) struct deferred_symbols found = {0};
        name_in_steps(&code, kept[i], &found);
        compare_chains(&whole, &found);
    }
}

int main(void)
{
    (void)known_function(0); // keeps the function in the binary
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_where_there_are_none),
        cmocka_unit_test(a_finished_recording_is_believed),
        cmocka_unit_test(steps_find_what_one_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
