// SPDX-License-Identifier: MIT
// unrecorded_list: notes at any moment, and what they say of a process.
#include "recorder/processes/unrecorded_list.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "recorder/session/session_create.h"
#include "session/exec_check.h"
#include "session/layout.h"
#include "target/producer/exec_note.h"

enum {
    NOTES = 20000,
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
    assert_int_equal(unrecorded_list_hear(list, aggregator, session, 5), ERR_OK);
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
    struct aggregator aggregator;
    pthread_t thread;
    CLEANUP(unrecorded_list_release) struct unrecorded_list list = {0};
    assert_int_equal(session_create(&(struct session_options){0}, &session, NULL), ERR_OK);
    assert_int_equal(aggregator_init(&aggregator, 1), ERR_OK);
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
        struct aggregator aggregator;
        struct aggregator_process *process;
        CLEANUP(unrecorded_list_release) struct unrecorded_list list = {0};
        const struct rec_process record = {
            .pid = 77, .flags = REC_PROCESS_KILLED, .killed_threads = 3};
        assert_int_equal(session_create(&(struct session_options){0}, &session, NULL), ERR_OK);
        assert_int_equal(aggregator_init(&aggregator, 1), ERR_OK);
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
        assert_int_equal(unrecorded_list_hear(&list, &aggregator, &session, 6), ERR_OK);
        assert_int_equal(unrecorded_list_count_due(&list, &aggregator, UINT64_MAX), ERR_OK);
        assert_int_equal(list.entries.items[0].execs, 1);
        const uint32_t expected =
            is_next != 0 ? REC_PROCESS_FORKED | REC_PROCESS_KILLED : REC_PROCESS_EXECED;
        assert_int_equal(process->record.flags, expected);
        assert_int_equal(process->record.killed_threads, is_next != 0 ? 3 : 0);
        aggregator_release(&aggregator);
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_note_is_heard_without_another_one),
        cmocka_unit_test(a_process_that_executed_a_program_was_not_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
