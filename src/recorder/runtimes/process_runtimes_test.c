// SPDX-License-Identifier: MIT
// Tests of process_runtimes: which processes are looked at, when, and what their records say then.
#include "recorder/runtimes/process_runtimes.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "session/runtime_settings.h"
#include "symbols/runtimes/test_module.h"

#define PROGRAM "/tmp/process_runtimes_test.program"

struct scene {
    struct aggregator aggregator;
    struct process_runtimes runtimes;
};

static void scene_make(struct scene *scene)
{
    *scene = (struct scene){0};
    assert_int_equal(aggregator_init(&scene->aggregator), ERR_OK);
    const int fd = open(PROGRAM, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0700);
    assert_true(test_module_write(fd, "_emalloc", 1, ".text"));
    assert_int_equal(close(fd), 0);
}

static void scene_release(struct scene *scene)
{
    process_runtimes_release(&scene->runtimes);
    aggregator_release(&scene->aggregator);
    assert_int_equal(unlink(PROGRAM), 0);
}

static rec_string intern(struct scene *scene, const char *text)
{
    rec_string id = 0;
    assert_int_equal(string_table_intern_text(&scene->aggregator.strings, text, &id), ERR_OK);
    return id;
}

// A process with a pid that none has.
static struct aggregator_process *begin(struct scene *scene, const char *executable, uint32_t flags)
{
    struct aggregator_process *process = NULL;
    const struct rec_process record = {.pid = INT32_MAX,
                                       .flags = flags,
                                       .executable = intern(scene, executable),
                                       .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&scene->aggregator, &record, &process), ERR_OK);
    return process;
}

static void end(struct scene *scene, struct aggregator_process *process)
{
    assert_int_equal(
        aggregator_process_end(&scene->aggregator, process, &(struct aggregator_process_ending){0}),
        ERR_OK);
}

// Read all that is to be read. Return how many were.
static size_t read_all(struct scene *scene)
{
    size_t count = 0;
    for (struct aggregator_process *process = NULL;; count++) {
        struct runtime_reading *reading = NULL;
        assert_int_equal(process_runtimes_next(&scene->runtimes, &scene->aggregator, -1, SIZE_MAX,
                                               &process, &reading),
                         ERR_OK);
        if (process == NULL) {
            return count;
        }
        runtime_reading_take(reading);
        assert_int_equal(
            process_runtimes_put(&scene->runtimes, &scene->aggregator, process, reading), ERR_OK);
        runtime_reading_free(reading);
    }
}

// Read all, and expect that many to wait and to be news.
static void expect(struct scene *scene, size_t waiting, size_t news)
{
    u32_vec_clear(&scene->runtimes.news);
    (void)read_all(scene); // the news count
    assert_int_equal(scene->runtimes.waiting.len, waiting);
    assert_int_equal(scene->runtimes.news.len, news);
}

static void expect_runtime(struct scene *scene, struct aggregator_process *process, const char *key)
{
    assert_string_equal(string_table_get(&scene->aggregator.strings, process->record.runtime), key);
}

static void the_program_tells_once_its_path_is_known(void **state)
{
    (void)state;
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    struct aggregator_process *late = begin(&scene, "", 0);
    struct aggregator_process *early = begin(&scene, PROGRAM, 0);
    struct aggregator_process *plain = begin(&scene, "/dev/null", 0);
    expect(&scene, 2, 1);
    expect_runtime(&scene, early, "php");
    expect(&scene, 2, 0);
    late->record.executable = early->record.executable;
    expect(&scene, 1, 1);
    expect_runtime(&scene, late, "php");
    end(&scene, plain);
    expect(&scene, 0, 0);
    expect_runtime(&scene, plain, "");
}

static void a_library_tells_at_any_time(void **state)
{
    (void)state;
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    struct aggregator_process *process = begin(&scene, "/dev/null", 0);
    expect(&scene, 1, 0);
    process->record.runtime = intern(&scene, "java"); // as lane_dictionary does
    expect(&scene, 0, 1);
    expect_runtime(&scene, process, "java");
    assert_int_equal(process->record.flags, 0);
}

static void a_process_that_has_ended_is_looked_at_once(void **state)
{
    (void)state;
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    struct aggregator_process *quick = begin(&scene, PROGRAM, 0);
    end(&scene, quick);
    end(&scene, begin(&scene, "", 0));
    expect(&scene, 0, 1);
    expect_runtime(&scene, quick, "php");
}

// It may be gone before its environment is read.
static void a_process_tells_what_its_environment_has(void **state)
{
    (void)state;
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    struct aggregator_process *open = begin(&scene, PROGRAM, 0);
    struct aggregator_process *of_another = begin(&scene, PROGRAM, 0);
    struct aggregator_process *silent = begin(&scene, PROGRAM, 0);
    open->tells_settings = true;
    open->settings = RUNTIME_SETTING_PHP | RUNTIME_SETTING_ERLANG;
    of_another->tells_settings = true;
    of_another->settings = RUNTIME_SETTING_PYTHON;
    end(&scene, open);
    end(&scene, of_another);
    end(&scene, silent);
    expect(&scene, 0, 3);
    assert_int_equal(open->record.flags & REC_PROCESS_OBJECTS, REC_PROCESS_OBJECTS);
    assert_int_equal(of_another->record.flags & REC_PROCESS_OBJECTS, 0);
    assert_int_equal(silent->record.flags & REC_PROCESS_OBJECTS, 0);
}

static void a_forked_child_has_its_parents_runtime(void **state)
{
    (void)state;
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    struct aggregator_process *parent = begin(&scene, PROGRAM, 0);
    struct aggregator_process *child = begin(&scene, "", REC_PROCESS_FORKED);
    struct aggregator_process *other = begin(&scene, "", 0);
    child->record.parent = parent->index;
    other->record.parent = parent->index;
    expect(&scene, 2, 1);
    parent->record.flags |= REC_PROCESS_OBJECTS;
    aggregator_process_inherit(&scene.aggregator, child);
    aggregator_process_inherit(&scene.aggregator, other);
    expect_runtime(&scene, child, "php");
    assert_int_equal(child->record.flags, REC_PROCESS_FORKED | REC_PROCESS_OBJECTS);
    expect_runtime(&scene, other, "");
}

// One call looks at few, and asks for one; the next goes on behind it.
static void processes_are_looked_at_in_turn(void **state)
{
    (void)state;
    enum {
        PROCESSES = 100
    };
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    for (int i = 0; i < PROCESSES; i++) {
        (void)begin(&scene, "", 0);
    }
    struct aggregator_process *last = begin(&scene, PROGRAM, 0);
    struct aggregator_process *asked = NULL;
    struct runtime_reading *reading = NULL;
    for (int calls = 0; calls < PROCESSES / 10; calls++) {
        assert_int_equal(
            process_runtimes_next(&scene.runtimes, &scene.aggregator, -1, 10, &asked, &reading),
            ERR_OK);
        assert_null(asked);
    }
    assert_int_equal(
        process_runtimes_next(&scene.runtimes, &scene.aggregator, -1, 10, &asked, &reading),
        ERR_OK);
    assert_ptr_equal(asked, last);
    // It did not let itself be read in time: it counts as one without a runtime.
    assert_int_equal(process_runtimes_put(&scene.runtimes, &scene.aggregator, asked, NULL), ERR_OK);
    runtime_reading_free(reading);
    assert_int_equal(read_all(&scene), 0);
    expect_runtime(&scene, last, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_tells_once_its_path_is_known),
        cmocka_unit_test(a_library_tells_at_any_time),
        cmocka_unit_test(a_process_that_has_ended_is_looked_at_once),
        cmocka_unit_test(a_process_tells_what_its_environment_has),
        cmocka_unit_test(a_forked_child_has_its_parents_runtime),
        cmocka_unit_test(processes_are_looked_at_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
