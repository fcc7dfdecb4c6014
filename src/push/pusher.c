// SPDX-License-Identifier: MIT
// pusher: see pusher.h.
#include "push/pusher.h"

#include "base/compiler.h"
#include "base/minmax.h"

// What the collector said about an entry.
enum verdict {
    VERDICT_SENT,
    VERDICT_REFUSED, // it will never take it
    VERDICT_LATER,
};

static enum verdict verdict_of(unsigned status)
{
    static const unsigned refusals[] = {400, 411, 413, 415, 422};
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        if (status == refusals[i]) {
            return VERDICT_REFUSED;
        }
    }
    return status >= 200 && status < 300 ? VERDICT_SENT : VERDICT_LATER;
}

bool pusher_is_due(struct pusher *pusher, uint64_t now_ms)
{
    if (now_ms < pusher->collect_ms) {
        return false;
    }
    pusher->collect_ms = now_ms + pusher->interval_ms; // a late one does not make up for others
    return true;
}

static void wait_longer(struct pusher *pusher, uint64_t asked_ms, uint64_t now_ms, uint64_t random)
{
    const uint64_t doubled_ms = max_u64(pusher->wait_ms * 2, PUSH_WAIT_MIN_MS);
    pusher->wait_ms = min_u64(doubled_ms, PUSH_WAIT_MAX_MS);
    const uint64_t half_ms = pusher->wait_ms / 2;
    const uint64_t wait_ms = half_ms + random % (half_ms + 1);
    pusher->send_ms = now_ms + max_u64(wait_ms, min_u64(asked_ms, PUSH_WAIT_MAX_MS));
}

bool pusher_send(
    struct pusher *pusher, push_send *send, void *context, uint64_t now_ms, uint64_t random)
{
    CLEANUP(strbuf_release) struct strbuf entry = {0};
    CLEANUP(http_answer_release) struct http_answer answer = {0};
    if (now_ms < pusher->send_ms || push_spool_oldest(&pusher->spool, &entry) != ERR_OK) {
        return false;
    }
    const enum err err = send(context, strbuf_bytes(&entry), &answer);
    const enum verdict verdict = err == ERR_INVALID ? VERDICT_REFUSED // not an entry of ours
                                 : err != ERR_OK    ? VERDICT_LATER
                                                    : verdict_of(answer.status);
    if (verdict == VERDICT_LATER) {
        wait_longer(pusher, answer.retry_after_ms, now_ms, random);
        return false;
    }
    push_spool_drop(&pusher->spool, verdict == VERDICT_REFUSED);
    pusher->sent_count += verdict == VERDICT_SENT;
    pusher->wait_ms = 0;
    return true;
}

uint64_t pusher_next_ms(const struct pusher *pusher)
{
    return pusher->spool.entries.len > 0 ? min_u64(pusher->collect_ms, pusher->send_ms)
                                         : pusher->collect_ms;
}
