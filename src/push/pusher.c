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

// Send an entry, or its smaller form, and judge the outcome.
static enum verdict try_to_send(
    push_send *send, void *context, struct bytes entry, bool is_smaller, uint64_t *retry_after_ms)
{
    CLEANUP(http_answer_release) struct http_answer answer = {0};
    const enum err err = send(context, entry, is_smaller, &answer);
    *retry_after_ms = answer.retry_after_ms;
    return err == ERR_INVALID ? VERDICT_REFUSED // not an entry of ours
           : err != ERR_OK    ? VERDICT_LATER
                              : verdict_of(answer.status);
}

bool pusher_send(
    struct pusher *pusher, push_send *send, void *context, uint64_t now_ms, uint64_t random)
{
    CLEANUP(strbuf_release) struct strbuf entry = {0};
    uint64_t asked_ms;
    if (now_ms < pusher->send_ms || push_spool_oldest(&pusher->spool, &entry) != ERR_OK) {
        return false;
    }
    const struct bytes bytes = strbuf_bytes(&entry);
    enum verdict verdict = try_to_send(send, context, bytes, false, &asked_ms);
    const bool is_smaller = verdict == VERDICT_REFUSED;
    if (is_smaller) {
        verdict = try_to_send(send, context, bytes, true, &asked_ms);
    }
    if (verdict == VERDICT_LATER) {
        wait_longer(pusher, asked_ms, now_ms, random);
        return false;
    }
    push_spool_drop(&pusher->spool, verdict == VERDICT_REFUSED);
    pusher->sent_count += verdict == VERDICT_SENT;
    pusher->smaller_count += verdict == VERDICT_SENT && is_smaller;
    pusher->wait_ms = 0;
    return true;
}

uint64_t pusher_next_ms(const struct pusher *pusher)
{
    return pusher->spool.entries.len > 0 ? min_u64(pusher->collect_ms, pusher->send_ms)
                                         : pusher->collect_ms;
}
