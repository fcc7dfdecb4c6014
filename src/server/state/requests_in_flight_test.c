// SPDX-License-Identifier: MIT
// Tests of requests_in_flight: what it shows of answers that wait, run, are given up or are sent.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/state/answer_limits.h"
#include "server/state/requests_in_flight.h"

static bool says(struct requests_in_flight *requests, const char *what)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    assert_int_equal(requests_in_flight_write(requests, &text), ERR_OK);
    bool does = strstr(strbuf_text(&text), what) != NULL;
    if (!does) {
        print_error("%s lacks %s\n", strbuf_text(&text), what);
    }
    return does;
}

// Check the invariant of requests_in_flight.h.
static void check(const struct requests_in_flight *requests)
{
    uint64_t counting = 0;
    for (size_t i = 0; i < REQUESTS_IN_FLIGHT_MAX; i++) {
        const struct answer_slot *slot = &requests->slots[i];
        counting += slot->target != NULL && slot->phase == ANSWER_COUNTS;
    }
    assert_int_equal(requests->begun, requests->finished + requests->abandoned + counting);
}

static void an_answer_waits_counts_and_is_sent(void **state)
{
    (void)state;
    struct requests_in_flight requests = REQUESTS_IN_FLIGHT_INIT;
    struct answer_slot *slot = requests_in_flight_enter(&requests, "/a?b=\"c");
    assert_true(says(&requests, "\"begun\":0,\"finished\":0,\"abandoned\":0"));
    assert_true(says(&requests, "{\"target\":\"/a?b=\\\"c\",\"phase\":\"waiting\""));
    requests_in_flight_begin(&requests, slot);
    check(&requests);
    assert_true(says(&requests, "\"begun\":1,\"finished\":0"));
    assert_true(says(&requests, "\"phase\":\"counting\""));
    requests_in_flight_pack(&requests, slot, ERR_INVALID); // an error counts as finished
    check(&requests);
    assert_true(says(&requests, "\"finished\":1,\"abandoned\":0"));
    assert_true(says(&requests, "\"phase\":\"packing\""));
    requests_in_flight_leave(&requests, slot);
    assert_true(says(&requests, "\"answers\":[]"));
    check(&requests);
    requests_in_flight_release(&requests);
}

static void only_what_was_begun_is_abandoned(void **state)
{
    (void)state;
    struct requests_in_flight requests = REQUESTS_IN_FLIGHT_INIT;
    struct answer_slot *early = requests_in_flight_enter(&requests, "/early");
    struct answer_slot *late = requests_in_flight_enter(&requests, "/late");
    requests_in_flight_begin(&requests, late);
    requests_in_flight_pack(&requests, early, ERR_CANCELLED);
    requests_in_flight_leave(&requests, early);
    check(&requests);
    assert_true(says(&requests, "\"begun\":1,\"finished\":0,\"abandoned\":0"));
    requests_in_flight_pack(&requests, late, ERR_CANCELLED);
    requests_in_flight_leave(&requests, late);
    check(&requests);
    assert_true(says(&requests, "\"begun\":1,\"finished\":0,\"abandoned\":1"));
    requests_in_flight_release(&requests);
}

// The watch reports the progress of the running loop each time it is asked.
static void it_says_how_far_the_work_is(void **state)
{
    (void)state;
    struct requests_in_flight requests = REQUESTS_IN_FLIGHT_INIT;
    struct answer_slot *slot = requests_in_flight_enter(&requests, "/a");
    atomic_bool is_closing = false;
    struct disconnect_watch watch = {
        .client_fd = -1, .is_closing = &is_closing, .deadline_ms = UINT64_MAX, .slot = slot};
    struct cancel cancel = {.ask = disconnect_watch_ask, .context = &watch};
    watch.cancel = &cancel;
    cancel_stage(&cancel, 100);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(cancel_step(&cancel), ERR_OK);
    }
    cancel_stage(&cancel, 1000);
    for (unsigned i = 0; i < 2U * CANCEL_ASKS_EVERY - 100; i++) {
        assert_int_equal(cancel_step(&cancel), ERR_OK);
    }
    assert_true(says(&requests, "\"stage\":2,\"done\":412,\"total\":1000"));
    requests_in_flight_leave(&requests, slot);
    requests_in_flight_release(&requests);
}

static void a_full_board_turns_nobody_away(void **state)
{
    (void)state;
    struct requests_in_flight requests = REQUESTS_IN_FLIGHT_INIT;
    struct answer_slot *last = NULL;
    for (size_t i = 0; i < REQUESTS_IN_FLIGHT_MAX; i++) {
        last = requests_in_flight_enter(&requests, "/a");
        assert_non_null(last);
    }
    struct answer_slot *none = requests_in_flight_enter(&requests, "/b");
    assert_null(none);
    requests_in_flight_begin(&requests, none);
    requests_in_flight_pack(&requests, none, ERR_OK);
    requests_in_flight_leave(&requests, none);
    check(&requests);
    requests_in_flight_leave(&requests, last);
    assert_ptr_equal(requests_in_flight_enter(&requests, "/b"), last);
    requests_in_flight_release(&requests);
}

static void *try_lock(void *mutex)
{
    return (void *)(intptr_t)pthread_mutex_trylock(mutex); // NOLINT(performance-no-int-to-ptr)
}

// A call that takes the lock and gives it back leaves a lock that this thread holds already; one
// that only gives it back would not.
static void each_call_holds_the_lock(void **state)
{
    (void)state;
    struct requests_in_flight requests = REQUESTS_IN_FLIGHT_INIT;
    pthread_mutexattr_t kind;
    assert_int_equal(pthread_mutexattr_init(&kind), 0);
    assert_int_equal(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE), 0);
    assert_int_equal(pthread_mutex_init(&requests.mutex, &kind), 0);
    for (unsigned call = 0; call < 5; call++) {
        pthread_t other;
        void *result;
        struct answer_slot *slot = call > 0 ? requests_in_flight_enter(&requests, "/a") : NULL;
        assert_int_equal(pthread_mutex_lock(&requests.mutex), 0);
        switch (call) {
        case 0:
            slot = requests_in_flight_enter(&requests, "/a");
            break;
        case 1:
            requests_in_flight_begin(&requests, slot);
            break;
        case 2:
            requests_in_flight_pack(&requests, slot, ERR_OK);
            break;
        case 3:
            requests_in_flight_leave(&requests, slot);
            break;
        default:
            assert_true(says(&requests, "\"answers\":["));
        }
        assert_int_equal(pthread_create(&other, NULL, try_lock, &requests.mutex), 0);
        assert_int_equal(pthread_join(other, &result), 0);
        assert_int_equal((intptr_t)result, EBUSY);
        assert_int_equal(pthread_mutex_unlock(&requests.mutex), 0);
        requests_in_flight_leave(&requests, slot);
    }
    (void)pthread_mutexattr_destroy(&kind);
    requests_in_flight_release(&requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_waits_counts_and_is_sent),
        cmocka_unit_test(only_what_was_begun_is_abandoned),
        cmocka_unit_test(it_says_how_far_the_work_is),
        cmocka_unit_test(a_full_board_turns_nobody_away),
        cmocka_unit_test(each_call_holds_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
