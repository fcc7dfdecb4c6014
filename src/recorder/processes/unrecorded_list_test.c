// SPDX-License-Identifier: MIT
// unrecorded_list: notes that are counted before they are ready.
#include "recorder/processes/unrecorded_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "base/compiler.h"
#include "recorder/session/session_create.h"
#include "session/exec_check.h"
#include "session/layout.h"

// A thread has counted its note and is stopped before it has claimed an entry. The recorder has
// seen the count then, and finds the note nevertheless: with the next one, or at the end.
static void a_note_that_is_late_is_heard_at_the_end(void **state)
{
    (void)state;
    for (uint32_t has_next = 0; has_next < 2; has_next++) {
        struct session session;
        struct aggregator aggregator;
        CLEANUP(unrecorded_list_release) struct unrecorded_list list = {0};
        assert_int_equal(session_create(&(struct session_options){0}, &session, NULL), ERR_OK);
        assert_int_equal(aggregator_init(&aggregator, 1), ERR_OK);
        atomic_store(&session.header->exec_count, 1);
        assert_int_equal(unrecorded_list_hear(&list, &aggregator, &session, 5), ERR_OK);
        assert_int_equal(list.recent.len, 0);
        for (uint32_t i = 0; i <= has_next; i++) {
            struct exec_note *note = session_exec_note(session.memory, i);
            note->obstacle = EXEC_STATIC;
            note->number = i + 1;
            memcpy(note->path, "/bin/late", sizeof("/bin/late"));
            atomic_store(&note->state, EXEC_NOTE_READY);
            atomic_store(&session.header->exec_count, i + 1);
        }
        assert_int_equal(unrecorded_list_hear(&list, &aggregator, &session, 6), ERR_OK);
        assert_int_equal(list.recent.len, 2 * has_next);
        assert_int_equal(unrecorded_list_hear(&list, &aggregator, &session, UINT64_MAX), ERR_OK);
        assert_int_equal(list.recent.len, 1 + has_next);
        assert_int_equal(unrecorded_list_count_due(&list, &aggregator, UINT64_MAX), ERR_OK);
        assert_int_equal(list.entries.items[0].execs, 1 + has_next);
        aggregator_release(&aggregator);
        session_release(&session);
    }
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
        cmocka_unit_test(a_note_that_is_late_is_heard_at_the_end),
        cmocka_unit_test(a_process_that_executed_a_program_was_not_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
