// SPDX-License-Identifier: MIT
// pusher: when it collects and sends, with the clock and the random numbers of the test.
#include "push/pusher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

struct collector {
    enum err err;
    struct http_answer answer;
    unsigned requests;
    unsigned smaller_status; // of the smaller form; 0: there is none
    unsigned smaller_requests;
};

static enum err send(void *context, struct bytes entry, bool is_smaller, struct http_answer *answer)
{
    struct collector *collector = context;
    assert_int_equal(entry.len, 1);
    if (is_smaller) {
        collector->smaller_requests++;
        answer->status = collector->smaller_status;
        return collector->smaller_status != 0 ? ERR_OK : ERR_INVALID;
    }
    collector->requests++;
    *answer = collector->answer;
    return collector->err;
}

static void add(struct pusher *pusher, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        push_spool_add(&pusher->spool, i, (struct bytes){(const uint8_t *)"x", 1});
    }
}

static void each_answer_has_its_consequence(void **state)
{
    static const struct {
        unsigned status;
        enum err err;
        bool stays;
        bool is_lost;
    } cases[] = {
        {200, ERR_OK, false, false},     {204, ERR_OK, false, false},
        {400, ERR_OK, false, true},      {413, ERR_OK, false, true},
        {411, ERR_OK, false, true},      {415, ERR_OK, false, true},
        {199, ERR_OK, true, false},      {299, ERR_OK, false, false},
        {300, ERR_OK, true, false},      {422, ERR_OK, false, true},
        {0, ERR_OK, true, false},        {302, ERR_OK, true, false},
        {401, ERR_OK, true, false},      {404, ERR_OK, true, false},
        {429, ERR_OK, true, false},      {500, ERR_OK, true, false},
        {503, ERR_OK, true, false},      {0, ERR_IO, true, false},
        {0, ERR_CANCELLED, true, false}, {0, ERR_NO_MEMORY, true, false},
        {0, ERR_INVALID, false, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pusher pusher = {.spool = {.folder = -1, .max_bytes = 10}};
        struct collector collector = {.err = cases[i].err, .answer.status = cases[i].status};
        add(&pusher, 1);
        assert_int_equal(pusher_send(&pusher, send, &collector, 0, 0), !cases[i].stays);
        assert_int_equal(pusher.spool.entries.len, cases[i].stays);
        assert_int_equal(pusher.spool.lost_count, cases[i].is_lost);
        assert_int_equal(pusher.sent_count, !cases[i].stays && !cases[i].is_lost);
        push_spool_close(&pusher.spool);
    }
}

static void a_refused_profile_is_retried_smaller_once(void **state)
{
    static const struct {
        unsigned status;
        unsigned smaller_status;
        bool asks_for_smaller;
        bool stays;
        bool is_lost;
    } cases[] = {
        {200, 200, false, false, false}, {503, 200, false, true, false},
        {400, 200, true, false, false},  {413, 204, true, false, false},
        {400, 400, true, false, true},   {413, 0, true, false, true},
        {422, 500, true, true, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pusher pusher = {.spool = {.folder = -1, .max_bytes = 10}};
        struct collector collector = {.answer.status = cases[i].status,
                                      .smaller_status = cases[i].smaller_status};
        const bool is_smaller = cases[i].asks_for_smaller && !cases[i].stays && !cases[i].is_lost;
        add(&pusher, 1);
        assert_int_equal(pusher_send(&pusher, send, &collector, 0, 0), !cases[i].stays);
        assert_int_equal(collector.requests, 1);
        assert_int_equal(collector.smaller_requests, cases[i].asks_for_smaller);
        assert_int_equal(pusher.spool.entries.len, cases[i].stays);
        assert_int_equal(pusher.spool.lost_count, cases[i].is_lost);
        assert_int_equal(pusher.smaller_count, is_smaller);
        assert_int_equal(pusher.wait_ms != 0, cases[i].stays);
        push_spool_close(&pusher.spool);
    }
}

static void the_wait_doubles_up_to_a_bound_and_a_success_ends_it(void **state)
{
    struct pusher pusher = {.spool = {.folder = -1, .max_bytes = 10}, .collect_ms = UINT64_MAX};
    struct collector collector = {.answer.status = 500};
    uint64_t now_ms = 1000;
    uint64_t wanted_ms = PUSH_WAIT_MIN_MS;
    (void)state;
    add(&pusher, 2);
    for (unsigned i = 0; i < 20; i++) {
        const uint64_t random = i % 2 == 0 ? 0 : wanted_ms / 2; // shortest and longest
        const uint64_t wrapped = random + wanted_ms / 2 + 1;    // the same again
        assert_false(pusher_send(&pusher, send, &collector, now_ms, i % 3 == 0 ? wrapped : random));
        assert_int_equal(pusher_next_ms(&pusher), now_ms + wanted_ms / 2 + random);
        assert_false(pusher_send(&pusher, send, &collector, pusher.send_ms - 1, 0)); // not yet
        assert_int_equal(collector.requests, i + 1);
        now_ms = pusher.send_ms;
        wanted_ms = wanted_ms * 2 < PUSH_WAIT_MAX_MS ? wanted_ms * 2 : PUSH_WAIT_MAX_MS;
    }
    collector.answer.status = 200;
    assert_true(pusher_send(&pusher, send, &collector, now_ms, 0));
    assert_int_equal(pusher_next_ms(&pusher), now_ms); // the rest follows at once
    assert_true(pusher_send(&pusher, send, &collector, now_ms, 0));
    assert_int_equal(pusher_next_ms(&pusher), UINT64_MAX);
    assert_false(pusher_send(&pusher, send, &collector, now_ms, 0));
    assert_int_equal(pusher.wait_ms, 0);
    push_spool_close(&pusher.spool);
}

static void the_collector_may_ask_for_a_longer_wait(void **state)
{
    static const struct {
        uint64_t asked_ms;
        uint64_t wanted_ms;
    } cases[] = {{0, 500}, {400, 500}, {7000, 7000}, {UINT64_MAX, PUSH_WAIT_MAX_MS}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pusher pusher = {.spool = {.folder = -1, .max_bytes = 10}};
        struct collector collector = {
            .answer = {.status = 429, .retry_after_ms = cases[i].asked_ms}};
        add(&pusher, 1);
        assert_false(pusher_send(&pusher, send, &collector, 10, 0));
        assert_int_equal(pusher.send_ms, 10 + cases[i].wanted_ms);
        push_spool_close(&pusher.spool);
    }
}

static void intervals_that_passed_unused_are_not_made_up_for(void **state)
{
    struct pusher pusher = {
        .interval_ms = 15, .collect_ms = 15, .spool = {.folder = -1, .max_bytes = 10}};
    (void)state;
    assert_false(pusher_is_due(&pusher, 14));
    assert_true(pusher_is_due(&pusher, 1000));
    assert_false(pusher_is_due(&pusher, 1014));
    assert_int_equal(pusher_next_ms(&pusher), 1015);
    assert_true(pusher_is_due(&pusher, 1015));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_has_its_consequence),
        cmocka_unit_test(a_refused_profile_is_retried_smaller_once),
        cmocka_unit_test(the_wait_doubles_up_to_a_bound_and_a_success_ends_it),
        cmocka_unit_test(the_collector_may_ask_for_a_longer_wait),
        cmocka_unit_test(intervals_that_passed_unused_are_not_made_up_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
