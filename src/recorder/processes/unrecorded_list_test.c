// SPDX-License-Identifier: MIT
// unrecorded_list: notes at any moment, and what they say of a process.
#include "recorder/processes/unrecorded_list.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "recorder/session/session_create.h"
#include "session/exec_check.h"
#include "session/layout.h"
#include "symbols/runtimes/test_module.h"
#include "target/producer/exec_note.h"

enum {
    NOTES = 5000,
    DEADLINE_S = 10,
};

struct writer {
    struct session_header *session;
    _Atomic uint32_t heard;
    _Atomic bool is_over;
    uint32_t put; // read it when the thread has ended
};

// Put one note after the other, each when the recorder has heard the one before.
static void *write_notes(void *context)
{
    struct writer *writer = context;
    const struct exec_notice notice = {.path = "/bin/other", .obstacle = EXEC_STATIC};
    bool is_traced;
    while (writer->put < NOTES && !atomic_load(&writer->is_over)) {
        (void)exec_note_put(writer->session, &notice, &is_traced);
        writer->put++;
        while (atomic_load(&writer->heard) < writer->put && !atomic_load(&writer->is_over)) {
            (void)sched_yield(); // there may be only one processor
        }
    }
    return NULL;
}

// Return the number of notes that are heard now.
static uint32_t
hear(struct unrecorded_list *list, struct aggregator *aggregator, struct session *session)
{
    assert_int_equal(unrecorded_list_take(list, aggregator, session, 5), ERR_OK);
    const uint32_t heard = (uint32_t)list->fresh.len;
    unrecorded_exec_vec_clear(&list->fresh);
    return heard;
}

// The recorder looks at any moment, also when a note has its number and is not ready. A process
// that is to be followed waits until the recorder has heard its note. A busy machine puts fewer
// notes until the deadline.
static void each_note_is_heard_without_another_one(void **state)
{
    (void)state;
    struct session session;
    struct aggregator aggregator = {0};
    pthread_t thread;
    CLEANUP(unrecorded_list_release) struct unrecorded_list list = {0};
    assert_int_equal(session_create(&(struct session_options){0}, &session, NULL), ERR_OK);
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    struct writer writer = {.session = session.header};
    assert_int_equal(pthread_create(&thread, NULL, write_notes, &writer), 0);
    const uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_S * NS_PER_S;
    uint32_t heard = 0;
    while (heard < NOTES && clock_monotonic_ns() < deadline_ns) {
        heard += hear(&list, &aggregator, &session);
        atomic_store(&writer.heard, heard);
        (void)sched_yield();
    }
    atomic_store(&writer.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    heard += hear(&list, &aggregator, &session);
    assert_true(writer.put > 0);
    assert_int_equal(heard, writer.put);
    aggregator_release(&aggregator);
    session_release(&session);
}

// The recorder finds the process dead before it believes the note of the program that it executed.
static void a_process_that_executed_a_program_was_not_killed(void **state)
{
    (void)state;
    for (uint32_t is_next = 0; is_next < 2; is_next++) { // another process that has the same pid
        struct session session;
        struct aggregator aggregator = {0};
        struct aggregator_process *process;
        CLEANUP(unrecorded_list_release) struct unrecorded_list list = {0};
        const struct rec_process record = {
            .pid = 77, .flags = REC_PROCESS_MAIN | REC_PROCESS_KILLED, .killed_threads = 3};
        assert_int_equal(session_create(&(struct session_options){0}, &session, NULL), ERR_OK);
        assert_int_equal(aggregator_init(&aggregator), ERR_OK);
        assert_int_equal(aggregator_process_begin(&aggregator, &record, &process), ERR_OK);
        process->join_number = 4 + is_next;
        process->record.flags |= is_next != 0 ? REC_PROCESS_FORKED : 0; // it has not replaced 77
        struct exec_note *note = session_exec_note(session.memory, 0);
        note->pid = 77;
        note->joins = 5;
        note->number = 1;
        note->obstacle = EXEC_STATIC;
        memcpy(note->path, "/bin/other", sizeof("/bin/other"));
        atomic_store(&note->state, EXEC_NOTE_READY);
        atomic_store(&session.header->exec_count, 1);
        assert_int_equal(unrecorded_list_take(&list, &aggregator, &session, 6), ERR_OK);
        assert_int_equal(unrecorded_list_count_due(&list, &aggregator, UINT64_MAX), ERR_OK);
        assert_int_equal(list.entries.items[0].execs, 1);
        const uint32_t expected =
            is_next != 0 ? REC_PROCESS_FORKED | REC_PROCESS_KILLED : REC_PROCESS_EXECED;
        assert_int_equal(process->record.flags, REC_PROCESS_MAIN | expected);
        assert_int_equal(process->record.killed_threads, is_next != 0 ? 3 : 0);
        aggregator_release(&aggregator);
        session_release(&session);
    }
}

struct scene {
    struct session session;
    struct aggregator aggregator;
    struct unrecorded_list list;
    struct exec_note *note;
};

static void scene_make(struct scene *scene)
{
    *scene = (struct scene){0};
    assert_int_equal(session_create(&(struct session_options){0}, &scene->session, NULL), ERR_OK);
    assert_int_equal(aggregator_init(&scene->aggregator), ERR_OK);
    scene->note = session_exec_note(scene->session.memory, 0);
}

static void scene_release(struct scene *scene)
{
    unrecorded_list_release(&scene->list);
    aggregator_release(&scene->aggregator);
    session_release(&scene->session);
}

// Put a note as a process does, and hear it.
static void put(struct scene *scene, struct exec_note note, const char *path, uint64_t now_ms)
{
    memcpy(scene->note, &note, sizeof(note));
    (void)snprintf(scene->note->path, sizeof(scene->note->path), "%s", path);
    atomic_store(&scene->note->state, EXEC_NOTE_READY);
    atomic_fetch_add(&scene->session.header->exec_count, 1);
    assert_int_equal(
        unrecorded_list_take(&scene->list, &scene->aggregator, &scene->session, now_ms), ERR_OK);
}

static void expect_counted(struct scene *scene, uint64_t now_ms, uint64_t wanted)
{
    uint64_t execs = 0;
    assert_int_equal(unrecorded_list_count_due(&scene->list, &scene->aggregator, now_ms), ERR_OK);
    for (size_t i = 0; i < scene->list.entries.len; i++) {
        execs += scene->list.entries.items[i].execs;
    }
    assert_int_equal(execs, wanted);
}

static void an_exec_counts_half_a_second_after_its_note_unless_it_is_taken_back(void **state)
{
    (void)state;
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    put(&scene, (struct exec_note){.number = 1, .obstacle = EXEC_STATIC}, "a", 100);
    put(&scene, (struct exec_note){.number = 2, .obstacle = EXEC_LIBC}, "a", 100);
    put(&scene, (struct exec_note){.number = 3, .obstacle = EXEC_STATIC}, "b", 101);
    assert_int_equal(scene.list.fresh.len, 3);
    assert_int_equal(scene.list.fresh.items[2].heard_ms, 101);
    put(&scene, (struct exec_note){.number = 2}, "", 102);
    assert_int_equal(scene.list.recent.len, 2);
    put(&scene, (struct exec_note){.number = 9}, "", 102); // not one of the list
    put(&scene, (struct exec_note){.number = 3, .obstacle = EXEC_OBSTACLE_COUNT}, "", 102);
    put(&scene, (struct exec_note){.number = 4, .obstacle = EXEC_STATIC}, "a", 102);
    assert_int_equal(scene.list.recent.len, 2);
    assert_int_equal(scene.list.wanted.len, 0);
    expect_counted(&scene, 599, 0);
    expect_counted(&scene, 600, 1);
    expect_counted(&scene, 601, 1);
    expect_counted(&scene, 602, 2);
    assert_int_equal(scene.list.entries.len, 1);
    assert_int_equal(scene.list.recent.len, 0);
    put(&scene, (struct exec_note){.number = 5, .obstacle = EXEC_STATIC}, "b", 700);
    expect_counted(&scene, UINT64_MAX, 3);
    assert_int_equal(scene.list.entries.len, 2);
}

static void many_programs_and_many_at_once_are_counted_by_their_reasons(void **state)
{
    (void)state;
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    for (uint32_t i = 0; i <= UNRECORDED_RECENT_MAX; i++) {
        char path[16];
        assert_int_equal(scene.list.entries.len, 0);
        (void)snprintf(path, sizeof(path), "%u", i);
        put(&scene, (struct exec_note){.number = i + 1, .obstacle = EXEC_STATIC}, path, 1);
    }
    assert_int_equal(scene.list.recent.len, UNRECORDED_RECENT_MAX);
    assert_int_equal(scene.list.entries.len, 1); // the last has no room to wait
    expect_counted(&scene, UINT64_MAX, UNRECORDED_RECENT_MAX + 1);
    assert_int_equal(scene.list.entries.len, UNRECORDED_PROGRAMS_MAX + 1);
    const struct rec_unrecorded *rest = &scene.list.entries.items[UNRECORDED_PROGRAMS_MAX];
    assert_int_equal(rest->program, 0);
    assert_int_equal(rest->execs, UNRECORDED_RECENT_MAX + 1 - UNRECORDED_PROGRAMS_MAX);
    put(&scene, (struct exec_note){.number = 7, .obstacle = EXEC_LIBC}, "0", 1);
    expect_counted(&scene, UINT64_MAX, UNRECORDED_RECENT_MAX + 2);
    assert_int_equal(scene.list.entries.len, UNRECORDED_PROGRAMS_MAX + 2); // another reason
    const struct unrecorded_exec exec = {.obstacle = EXEC_LIBC, .program = 0};
    assert_int_equal(unrecorded_list_add_descendants(&scene.list, &scene.aggregator, &exec, 5),
                     ERR_OK);
    assert_int_equal(unrecorded_list_add_descendants(&scene.list, &scene.aggregator, &exec, 2),
                     ERR_OK);
    assert_int_equal(scene.list.entries.items[UNRECORDED_PROGRAMS_MAX + 1].descendants, 7);
}

static void a_static_program_of_go_is_named_as_one(void **state)
{
    (void)state;
    static const char path[] = "/tmp/unrecorded_list_test.program";
    CLEANUP(scene_release) struct scene scene;
    scene_make(&scene);
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0700);
    assert_true(test_module_write(fd, "main", 1, ".gopclntab"));
    assert_int_equal(close(fd), 0);
    put(&scene, (struct exec_note){.number = 1, .obstacle = EXEC_STATIC}, path, 1);
    put(&scene, (struct exec_note){.number = 2, .obstacle = EXEC_LIBC}, path, 1);
    put(&scene, (struct exec_note){.number = 3, .obstacle = EXEC_STATIC}, path, 1);
    assert_int_equal(scene.list.unread.len, 1); // once
    const struct unread_program *unread = scene.list.unread.items;
    const char *program = string_table_get(&scene.aggregator.strings, unread->program);
    assert_int_equal(runtime_files_put(&scene.list.runtimes, unread->program,
                                       runtime_files_read(program, unread->pid)),
                     ERR_OK);
    assert_int_equal(unlink(path), 0);
    expect_counted(&scene, UINT64_MAX, 3);
    assert_int_equal(scene.list.entries.len, 2);
    static const char *const reasons[] = {"go", "libc"};
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        assert_string_equal(
            string_table_get(&scene.aggregator.strings, scene.list.entries.items[i].reason),
            reasons[i]);
    }
}

static void an_exec_is_followed_if_its_process_waits(void **state)
{
    (void)state;
    static const struct {
        struct exec_note note;
        bool may_follow;
        uint64_t now_ms;
        pid_t thread; // 0: it is not followed
    } cases[] = {
        {{.pid = 70, .thread_id = 70, .follow = EXEC_FOLLOW_WANTED}, true, 5, 70},
        {{.pid = 70, .thread_id = 71, .follow = EXEC_FOLLOW_WANTED}, true, 5, 71},
        {{.pid = 70, .thread_id = 71, .follow = EXEC_FOLLOW_WANTED}, false, 5, 0},
        {{.pid = 70, .thread_id = 71, .follow = EXEC_FOLLOW_WANTED}, true, UINT64_MAX, 0},
        {{.pid = 70, .thread_id = 0, .follow = EXEC_FOLLOW_WANTED}, true, 5, 0},
        {{.pid = 70, .thread_id = 71, .follow = EXEC_FOLLOW_NO}, true, 5, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(scene_release) struct scene scene;
        struct exec_note note;
        scene_make(&scene);
        memcpy(&note, &cases[i].note, sizeof(note));
        note.number = 3;
        note.time_ms = 4;
        note.obstacle = EXEC_STATIC;
        note.makes_child = i == 0;
        scene.list.may_follow = cases[i].may_follow;
        put(&scene, note, "a", cases[i].now_ms);
        const bool is_followed = cases[i].thread != 0;
        assert_int_equal(atomic_load(&scene.note->state),
                         is_followed ? EXEC_NOTE_HEARD : EXEC_NOTE_FREE);
        assert_int_equal(scene.list.wanted.len, is_followed);
        assert_int_equal(scene.list.fresh.len, !is_followed);
        const struct unrecorded_exec *exec =
            is_followed ? &scene.list.wanted.items[0].exec : &scene.list.fresh.items[0];
        assert_int_equal(exec->number, 3);
        assert_int_equal(exec->time_ms, 4);
        assert_int_equal(exec->pid, 70);
        if (is_followed) {
            assert_int_equal(scene.list.wanted.items[0].thread, cases[i].thread);
            assert_int_equal(scene.list.wanted.items[0].makes_child, i == 0);
            assert_ptr_equal(scene.list.wanted.items[0].note, scene.note);
            put(&scene, (struct exec_note){.number = 8}, "", 6); // one that has failed
            assert_int_equal(scene.list.wanted.len, 2);
            assert_int_equal(scene.list.wanted.items[1].exec.number, 8);
            assert_int_equal(scene.list.wanted.items[1].exec.obstacle, EXEC_NONE);
        }
    }
}

static void an_exec_whose_image_joins_is_not_counted(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        uint64_t join_number;
        uint64_t wanted;
    } cases[] = {{0, 5, 0}, {0, 6, 0}, {0, 4, 1}, {REC_PROCESS_FORKED, 6, 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(scene_release) struct scene scene;
        struct aggregator_process *process;
        const struct rec_process record = {.pid = 77, .flags = cases[i].flags};
        scene_make(&scene);
        assert_int_equal(aggregator_process_begin(&scene.aggregator, &record, &process), ERR_OK);
        process->join_number = cases[i].join_number;
        put(&scene, (struct exec_note){.pid = 77, .number = 1, .joins = 5, .obstacle = EXEC_STATIC},
            "a", 1);
        expect_counted(&scene, UINT64_MAX, cases[i].wanted);
        assert_int_equal(scene.list.recent.len, 0);
    }
}

static void who_has_loaded_libraries_waits_unless_the_recording_ends(void **state)
{
    (void)state;
    for (int is_last = 0; is_last < 2; is_last++) {
        CLEANUP(scene_release) struct scene scene;
        scene_make(&scene);
        put(&scene, (struct exec_note){.pid = 78, .has_loaded = 1, .obstacle = EXEC_STATIC}, "",
            is_last != 0 ? UINT64_MAX : 1);
        assert_int_equal(atomic_load(&scene.note->state),
                         is_last != 0 ? EXEC_NOTE_FREE : EXEC_NOTE_HEARD);
        assert_int_equal(scene.list.loaded.len, is_last == 0);
        if (is_last == 0) {
            assert_int_equal(scene.list.loaded.items[0].pid, 78);
            assert_ptr_equal(scene.list.loaded.items[0].note, scene.note);
        }
        expect_counted(&scene, UINT64_MAX, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_note_is_heard_without_another_one),
        cmocka_unit_test(a_process_that_executed_a_program_was_not_killed),
        cmocka_unit_test(an_exec_counts_half_a_second_after_its_note_unless_it_is_taken_back),
        cmocka_unit_test(many_programs_and_many_at_once_are_counted_by_their_reasons),
        cmocka_unit_test(a_static_program_of_go_is_named_as_one),
        cmocka_unit_test(an_exec_is_followed_if_its_process_waits),
        cmocka_unit_test(an_exec_whose_image_joins_is_not_counted),
        cmocka_unit_test(who_has_loaded_libraries_waits_unless_the_recording_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
