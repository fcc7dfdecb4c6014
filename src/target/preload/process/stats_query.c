// SPDX-License-Identifier: MIT
#include "target/preload/process/stats_query.h"

#include <time.h>

#include "base/sys.h"
#include "session/recorder_wake.h"
#include "target/producer/entry/lane_entry.h"
#include "target/producer/waiting/recorder_liveness.h"

enum {
    WHAT_SHIFT = 32, // behind the number
    SCOPE_SHIFT = 40,
};

// Send a query behind all of the thread's events. Number 0: without a response.
static bool
send_query(struct lane_producer *p, enum stats_query_what what, uint32_t scope, uint32_t number)
{
    const uint64_t word = wire_word(WIRE_QUERY, number | (uint64_t)what << WHAT_SHIFT |
                                                    (uint64_t)scope << SCOPE_SHIFT);
    return lane_flush(p) && lane_send(p, &word, 1);
}

bool stats_query_ask(struct lane_producer *p,
                     enum stats_query_what what,
                     uint32_t scope,
                     uint32_t *number)
{
    p->lane->answer.asked++;
    p->lane->answer.asked += p->lane->answer.asked == 0; // 0 is not a query's number
    *number = p->lane->answer.asked;
    return send_query(p, what, scope, *number);
}

bool stats_query_open_scope(struct lane_producer *p, uint32_t *scope)
{
    const uint32_t closed = ~p->open_scopes & ((1u << LANE_SCOPES_MAX) - 1);
    if (closed == 0 || !lane_enter(p) || !lane_flush(p)) {
        return false;
    }
    *scope = (uint32_t)__builtin_ctz(closed);
    p->open_scopes |= 1u << *scope;
    book_follow_scopes(p);
    return true;
}

void stats_query_close_scope(struct lane_producer *p, uint32_t scope)
{
    p->open_scopes &= ~(1u << scope);
    book_follow_scopes(p);
    (void)send_query(p, STATS_QUERY_PEAK_END, scope, 0); // false: the scope has ended too
}

// Whether the query `number`, or a later query of this thread, has a response.
static bool is_answered(uint32_t answered, uint32_t number)
{
    return (int32_t)(answered - number) >= 0;
}

// Copy the response, if it still belongs to `number`.
static enum stats_query_end
take_answer(struct lane_answer *answer, uint32_t number, uint64_t values[static ANSWER_VALUES])
{
    for (uint32_t i = 0; i < ANSWER_VALUES; i++) {
        values[i] = atomic_load_explicit(&answer->values[i], memory_order_relaxed);
    }
    // Only a handler on this thread makes the recorder write another response.
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&answer->answered, memory_order_relaxed) == number
               ? STATS_QUERY_ANSWERED
               : STATS_QUERY_SUPERSEDED;
}

enum stats_query_end stats_query_await(struct session_header *session,
                                       struct lane_header *lane,
                                       uint32_t number,
                                       uint64_t values[static ANSWER_VALUES])
{
    const struct timespec nap = {.tv_nsec = LANE_WAIT_MS * 1000000L};
    struct lane_answer *answer = &lane->answer;
    struct patience patience;
    patience_init(&patience, session, lane);
    session_wake_recorder(session);
    for (;;) {
        // Acquire: pairs with the recorder's release; the values are those of this number.
        const uint32_t answered = atomic_load_explicit(&answer->answered, memory_order_acquire);
        if (is_answered(answered, number)) {
            return take_answer(answer, number, values);
        }
        if (session_is_over(session)) {
            return STATS_QUERY_OVER;
        }
        (void)sys_futex_wait(&answer->answered, answered,
                             &nap); // the reason for waking does not matter: we check
        if (patience_is_over(&patience, session, lane)) {
            return STATS_QUERY_OVER;
        }
    }
}
