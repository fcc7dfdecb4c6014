// SPDX-License-Identifier: MIT
// Tests of location_text: functions and places in a line of a given width.
#include "cli/text/location_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recording/test_support/recording_text.h"

struct scene {
    struct recording recording;
    struct profile *profile;
    struct code_union code;
};

static void scene_release(struct scene *scene)
{
    code_union_release(&scene->code);
    profile_close(scene->profile);
    recording_release(&scene->recording);
}

static void scene_make(struct scene *scene)
{
    static const char text[] = "/opt/app!main(/src/app.c:12);!lone(lone.c:0) 1 8\n"
                               "/opt/app!main(/src/app.c:12);/lib/libsomewhatlong.so!outer(a.c:3)=>"
                               "inner_function 1 8\n"
                               "/opt/app!main(/src/app.c:12);/opt/app!\033code 1 8\n"
                               "/opt/app!;/bin/x!short 1 8\n";
    struct err_info info = {0};
    if (recording_from_text(text, &scene->recording, &info) != ERR_OK) {
        fail_msg("%s", info.text);
    }
    assert_int_equal(profile_from_recording(&scene->recording, NULL, NULL, &scene->profile, NULL),
                     ERR_OK);
    assert_int_equal(code_union_build(scene->profile, NULL, &scene->code), ERR_OK);
}

static uint32_t location_of(const struct scene *scene, const char *function)
{
    for (uint32_t i = 0; function != NULL && i < scene->profile->code.locations.len; i++) {
        if (strcmp(profile_location_function(scene->profile, i), function) == 0) {
            return i;
        }
    }
    return REC_NONE;
}

static void a_function_is_cut_to_its_columns(void **state)
{
    (void)state;
    static const struct {
        const char *function; // NULL: no stack
        bool is_inlined;
        size_t columns;
        const char *wanted;
    } cases[] = {
        {NULL, false, 80, "(no stack)"},
        {NULL, true, SIZE_MAX, "(no stack)"},
        {"inner_function", false, 14, "inner_function"},
        {"inner_function", false, 13, "inner...ction"},
        {"inner_function", true, 24, "inner_function (inlined)"},
        {"inner_function", true, 23, "inner...ction (inlined)"},
        {"inner_function", true, 11, "i (inlined)"},
        {"inner_function", true, 10, " (inlined)"},
        {"inner_function", true, 9, " (inlined)"},
        {"inner_function", true, 0, " (inlined)"},
        {"inner_function", true, SIZE_MAX, "inner_function (inlined)"},
        {"\033code", false, SIZE_MAX, "\\x1bcode"},
        {"\033code", false, 8, "\\x1bcode"},
    };
    CLEANUP(scene_release) struct scene scene = {0};
    scene_make(&scene);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        location_append_function(&out, scene.profile, location_of(&scene, cases[i].function),
                                 cases[i].is_inlined, cases[i].columns);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
}

static void a_place_is_as_exact_as_the_recording(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        bool is_full;
        const char *wanted;
    } cases[] = {
        {NULL, false, ""},         {"main", false, "app.c:12"},  {"main", true, "/src/app.c:12"},
        {"lone", false, "lone.c"}, {"inner_function", true, ""},
    };
    CLEANUP(scene_release) struct scene scene = {0};
    scene_make(&scene);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        location_append_line(&out, scene.profile, location_of(&scene, cases[i].function),
                             cases[i].is_full);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
}

static uint32_t function_of(const struct scene *scene, const char *name)
{
    for (uint32_t i = 0; name != NULL && i < scene->code.origins.len; i++) {
        if (strcmp(code_union_name(&scene->code, i), name) == 0) {
            return i;
        }
    }
    return REC_NONE;
}

static void a_line_has_room_for_the_name_first(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        const char *others;
        size_t used;
        struct function_look look;
        const char *wanted;
    } cases[] = {
        // The exact fit, and one column less.
        {"lone", "", 10, {.width = 14, .module_columns = 20}, "lone\n"},
        {"lone", "", 10, {.width = 13, .module_columns = 20}, "lon\n"},
        {"main", "", 10, {.width = 21, .module_columns = 20}, "main  [app]\n"},
        {"main", "", 10, {.width = 20, .module_columns = 20}, "main\n"},
        {"main", " (+ 1)", 10, {.width = 27, .module_columns = 20}, "main (+ 1)  [app]\n"},
        {"main", " (+ 1)", 10, {.width = 26, .module_columns = 20}, "main (+ 1)\n"},
        {"main", "", 10, {.width = 13, .module_columns = 20}, "mai\n"},
        {"main", "", 10, {.width = 10, .module_columns = 20}, "\n"},
        {"outer", "", 0, {.width = 80, .module_columns = 18}, "outer  [libsomewhatlong.so]\n"},
        {"outer", "", 0, {.width = 80, .module_columns = 17}, "outer  [...omewhatlong.so]\n"},
        {"outer", "", 0, {.width = 22, .module_columns = 13}, "outer  [...hatlong.so]\n"},
        {"outer", "", 0, {.use_full_names = true}, "outer  [/lib/libsomewhatlong.so]\n"},
        {"app+0x50", "", 0, {.width = 80, .module_columns = 20}, "app+0x50\n"},
        {"app+0x50", "", 0, {.use_full_names = true}, "app+0x50  [/opt/app]\n"},
        {"short", "", 10, {.width = 20, .module_columns = 20}, "short  [x]\n"},
        {"short", "", 10, {.width = 19, .module_columns = 20}, "short\n"},
        // A module of eight columns or more is cut to eight, and then left out.
        {"outer", "", 0, {.width = 17, .module_columns = 20}, "outer  [...ng.so]\n"},
        {"outer", "", 0, {.width = 16, .module_columns = 20}, "outer\n"},
        {NULL, "", 70, {.width = 80, .module_columns = 20}, "(no stack)\n"},
        {"main", "", 0, {.use_color = true, .width = 80, .module_columns = 20}, NULL},
    };
    CLEANUP(scene_release) struct scene scene = {0};
    scene_make(&scene);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        assert_non_null(out);
        function_print(out, &scene.code, function_of(&scene, cases[i].function), cases[i].others,
                       cases[i].used, &cases[i].look);
        assert_int_equal(fclose(out), 0);
        if (cases[i].wanted != NULL) {
            assert_string_equal(text, cases[i].wanted);
        } else {
            assert_non_null(strchr(text, '\033'));
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_cut_to_its_columns),
        cmocka_unit_test(a_place_is_as_exact_as_the_recording),
        cmocka_unit_test(a_line_has_room_for_the_name_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
