// SPDX-License-Identifier: MIT
// Tests of process: what a process writes into its slot, and how it leaves its session.
#include "target/preload/process/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "session/layout.h"

enum {
    SLOTS = 4
};

static _Alignas(64) char g_session[SESSION_PROCESS_OFFSET + SLOTS * sizeof(struct process_slot)];
static struct process_page g_page;

static struct session_header *session(void)
{
    return (struct session_header *)(void *)g_session;
}

// Join a session that consists of its header and some slots.
static int join(void **state)
{
    (void)state;
    memset(g_session, 0, sizeof(g_session));
    memset(&g_page, 0, sizeof(g_page));
    atomic_store(&g_page.session, session());
    process_mapping()->header = session();
    g_process = &g_page;
    return 0;
}

static void forgoing_the_exit_note_changes_one_flag_of_one_slot(void **state)
{
    (void)state;
    static const uint32_t cases[][2] = {
        {0, 0},
        {PROCESS_NOTES_EXIT, 0},
        {PROCESS_FORKED | PROCESS_NOTES_EXIT, PROCESS_FORKED},
        {PROCESS_ATTACHED, PROCESS_ATTACHED},
        {UINT32_MAX, ~(uint32_t)PROCESS_NOTES_EXIT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (uint32_t index = 0; index < SLOTS; index++) {
            g_page.index = index;
            for (uint32_t k = 0; k < SLOTS; k++) {
                session_process(session(), k)->flags = cases[i][0];
            }
            process_forgo_exit_note();
            for (uint32_t k = 0; k < SLOTS; k++) {
                assert_int_equal(session_process(session(), k)->flags,
                                 cases[i][k == index ? 1 : 0]);
            }
        }
    }
    // A process that is not joined has no slot.
    g_page.index = 0;
    session_process(session(), 0)->flags = PROCESS_NOTES_EXIT;
    atomic_store(&g_page.session, NULL);
    process_forgo_exit_note();
    assert_int_equal(session_process(session(), 0)->flags, PROCESS_NOTES_EXIT);
}

static void a_process_leaves_once(void **state)
{
    (void)state;
    atomic_store(&g_page.generation, UINT64_C(3) << 32 | 7);
    assert_int_equal(process_next_mapping(), 1);
    assert_int_equal(process_next_mapping(), 2);
    process_code_unloaded();
    assert_int_equal(process_generation(), UINT64_C(3) << 32 | 8);
    assert_null(process_abandoned_session());
    process_leave();
    assert_null(process_session());
    assert_int_equal(process_generation(), 0);
    assert_int_equal(g_page.left_generation, UINT64_C(3) << 32 | 8);
    assert_int_equal(process_next_mapping(), 0);
    process_leave(); // another thread was first
    assert_int_equal(g_page.left_generation, UINT64_C(3) << 32 | 8);
    // The session is still there for what needs it, and counts.
    process_count(LOST_reentrant);
    assert_int_equal(session()->counters[LOST_reentrant], 1);
}

// Only a session that was left because its recorder died is abandoned.
static void an_abandoned_session_is_known_after_it_was_left(void **state)
{
    (void)state;
    atomic_store(&session()->state, SESSION_ABANDONED);
    assert_null(process_abandoned_session()); // not left yet
    process_leave();
    assert_ptr_equal(process_abandoned_session(), session());
    atomic_store(&session()->state, SESSION_RUNNING); // what was not sent is still missing
    assert_ptr_equal(process_abandoned_session(), session());
    atomic_store(&session()->state, SESSION_ENDED);
    assert_null(process_abandoned_session());
    atomic_store(&session()->state, SESSION_ABANDONED);
    process_mapping()->header = NULL;
    assert_null(process_abandoned_session());
}

// Its recorder lives after all.
static void a_process_that_left_comes_back_by_another_generation(void **state)
{
    (void)state;
    struct process_slot *slot = session_process(session(), 2);
    g_page.index = 2;
    slot->pid = 0; // of this image, which has never joined
    atomic_store(&slot->state, PROCESS_ACTIVE);
    atomic_store(&g_page.generation, UINT64_C(3) << 32 | 8);
    atomic_store(&g_page.verdict, UINT32_MAX); // any: it is joined
    for (uint64_t back = 9; back < 12; back++) {
        atomic_store(&session()->state, SESSION_ABANDONED);
        process_leave();
        assert_false(process_join());
        assert_null(process_session());
        atomic_store(&session()->state, SESSION_RUNNING);
        assert_true(process_join());
        assert_ptr_equal(process_session(), session());
        assert_int_equal(process_generation(), UINT64_C(3) << 32 | back);
        assert_int_equal(g_page.index, 2);
        g_page.left_generation = UINT64_C(3) << 32 | 8; // a thread that leaves late
        atomic_store(&session()->state, SESSION_ABANDONED);
    }
    atomic_store(&session()->state, SESSION_ENDED);
    process_leave();
    assert_false(process_join());
    assert_null(process_session());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(forgoing_the_exit_note_changes_one_flag_of_one_slot, join),
        cmocka_unit_test_setup(a_process_leaves_once, join),
        cmocka_unit_test_setup(an_abandoned_session_is_known_after_it_was_left, join),
        cmocka_unit_test_setup(a_process_that_left_comes_back_by_another_generation, join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
