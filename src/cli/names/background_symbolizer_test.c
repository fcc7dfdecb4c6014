// SPDX-License-Identifier: MIT
// background_symbolizer: names what it sees while a program runs, and leaves the rest to the end.
#include "cli/names/background_symbolizer.h"

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "host/os/mutex.h"

#define DEADLINE_NS ((uint64_t)60 * NS_PER_S)

// The function that the frame is in; it has an entry in the dynamic symbols.
__attribute__((visibility("default"))) int background_symbolizer_is_tested(int value);
int background_symbolizer_is_tested(int value)
{
    return value + 1;
}

struct scene {
    struct string_table strings;
    struct stack_table stacks;
    struct background_symbolizer ahead;
    char path[4096]; // of this program
    uint32_t module;
};

static struct bytes text_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

// Begin with a module that stands for this program, and a frame of it.
static void scene_begin(struct scene *scene, bool has_path)
{
    const uintptr_t function = (uintptr_t)background_symbolizer_is_tested;
    Dl_info info;
    uint32_t frame;
    *scene = (struct scene){0};
    assert_int_not_equal(readlink("/proc/self/exe", scene->path, sizeof(scene->path) - 1), -1);
    assert_int_not_equal(dladdr((const void *)function, &info), 0);
    assert_int_equal(stack_table_init(&scene->stacks, &scene->strings), ERR_OK);
    assert_int_equal(stack_table_module(&scene->stacks, text_of(has_path ? scene->path : ""),
                                        text_of(""), &scene->module),
                     ERR_OK);
    assert_int_equal(stack_table_frame(&scene->stacks, scene->module,
                                       function - (uintptr_t)info.dli_fbase + 1, 0, &frame),
                     ERR_OK);
    background_symbolizer_init(&scene->ahead, &(struct name_sources){0});
}

static void scene_end(struct scene *scene)
{
    background_symbolizer_release(&scene->ahead);
    stack_table_release(&scene->stacks);
    string_table_release(&scene->strings);
}

// Let the thread look up what it sees, and wait until it has.
static void see(struct scene *scene)
{
    struct background_symbolizer *ahead = &scene->ahead;
    const uint64_t until_ns = clock_monotonic_ns() + DEADLINE_NS;
    bool is_done = false;
    background_symbolizer_see(ahead, &scene->stacks);
    while (!is_done && !ahead->has_failed) { // it fails below sanitizers, by design
        assert_true(clock_monotonic_ns() < until_ns);
        (void)sched_yield();
        mutex_lock(&ahead->lock);
        is_done = ahead->inbox.frames.len == 0 && !ahead->is_stepping;
        mutex_unlock(&ahead->lock);
    }
}

// Name all frames, as at the end of a recording. Return whether the frame of the module has a name.
static bool is_named_at_end(struct scene *scene)
{
    const struct rec_module *module = &scene->stacks.modules.items[scene->module];
    const struct late_code_module modules[] = {
        {.path = string_table_get(&scene->strings, module->path), .build_id = ""}};
    const struct late_code code = {.modules = modules,
                                   .module_count = 1,
                                   .frames = scene->stacks.frames.items,
                                   .frame_count = scene->stacks.frames.len};
    struct deferred_lookup *lookup = background_symbolizer_end(&scene->ahead);
    struct deferred_lookup *own = NULL;
    struct deferred_symbols found;
    if (lookup == NULL) {
        const struct deferred_lookup_options options = {0};
        assert_int_equal(deferred_lookup_new(&options, &own), ERR_OK);
        lookup = own;
    }
    assert_int_equal(deferred_lookup_step(lookup, &code, NULL), ERR_OK);
    deferred_lookup_take(lookup, &found);
    bool is_named = false;
    for (size_t i = 0; i < found.frames.len; i++) {
        const char *name = string_table_get(&found.texts, found.frames.items[i].function);
        is_named = is_named || strcmp(name, "background_symbolizer_is_tested") == 0;
    }
    deferred_symbols_release(&found);
    deferred_lookup_free(own);
    return is_named;
}

static void code_is_named(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, true);
    see(&scene);
    assert_true(is_named_at_end(&scene));
    scene_end(&scene);
}

// A library's constructor called the program, whose path the recorder learns later.
static void a_path_may_come_late(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, false);
    see(&scene);
    assert_int_equal(stack_table_name_module(&scene.stacks, scene.module, text_of(scene.path)),
                     ERR_OK);
    assert_true(is_named_at_end(&scene));
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_named),
        cmocka_unit_test(a_path_may_come_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
