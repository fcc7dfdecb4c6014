// SPDX-License-Identifier: MIT
#include "server/state/requests_in_flight.h"

#include "base/clock.h"
#include "host/os/mutex.h"
#include "host/text/json_writer.h"
#include "views_json/layout/view.h"

struct answer_slot *requests_in_flight_enter(struct requests_in_flight *requests,
                                             const char *target)
{
    struct answer_slot *found = NULL;
    mutex_lock(&requests->mutex);
    for (size_t i = 0; i < REQUESTS_IN_FLIGHT_MAX && found == NULL; i++) {
        found = requests->slots[i].target == NULL ? &requests->slots[i] : NULL;
    }
    if (found != NULL) {
        *found = (struct answer_slot){.target = target, .entered_ms = clock_monotonic_ms()};
    }
    mutex_unlock(&requests->mutex);
    return found;
}

void requests_in_flight_begin(struct requests_in_flight *requests, struct answer_slot *slot)
{
    mutex_lock(&requests->mutex);
    if (slot != NULL) {
        slot->phase = ANSWER_COUNTS;
        requests->begun++;
    }
    mutex_unlock(&requests->mutex);
}

void requests_in_flight_pack(struct requests_in_flight *requests,
                             struct answer_slot *slot,
                             enum err outcome)
{
    mutex_lock(&requests->mutex);
    if (slot != NULL && slot->phase == ANSWER_COUNTS) {
        slot->phase = ANSWER_PACKS;
        requests->finished += outcome != ERR_CANCELLED;
        requests->abandoned += outcome == ERR_CANCELLED;
    }
    mutex_unlock(&requests->mutex);
}

void requests_in_flight_leave(struct requests_in_flight *requests, struct answer_slot *slot)
{
    mutex_lock(&requests->mutex);
    if (slot != NULL) {
        slot->target = NULL;
    }
    mutex_unlock(&requests->mutex);
}

void answer_slot_note(struct answer_slot *slot, const struct cancel *cancel)
{
    if (slot == NULL) {
        return;
    }
    uint32_t done = cancel->steps - cancel->stage_steps;
    atomic_store_explicit(&slot->stage, cancel->stage, memory_order_relaxed);
    atomic_store_explicit(&slot->done, done, memory_order_relaxed);
    atomic_store_explicit(&slot->total, cancel->stage_total, memory_order_relaxed);
}

static void write_slot(struct json_writer *w, struct answer_slot *slot, uint64_t now_ms)
{
    static const char *const phases[] = {
        [ANSWER_WAITS] = "waiting", [ANSWER_COUNTS] = "counting", [ANSWER_PACKS] = "packing"};
    json_begin_object(w);
    json_key_string(w, "target", slot->target);
    json_key_string(w, "phase", phases[slot->phase]);
    json_key_u64(w, "elapsed_ms", now_ms - slot->entered_ms);
    json_key_u64(w, "stage", atomic_load_explicit(&slot->stage, memory_order_relaxed));
    json_key_u64(w, "done", atomic_load_explicit(&slot->done, memory_order_relaxed));
    json_key_u64(w, "total", atomic_load_explicit(&slot->total, memory_order_relaxed));
    json_end_object(w);
}

enum err requests_in_flight_write(struct requests_in_flight *requests, struct strbuf *out)
{
    struct json_writer w;
    json_to_strbuf(&w, out, JSON_COMPACT);
    mutex_lock(&requests->mutex);
    uint64_t now_ms = clock_monotonic_ms();
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_u64(&w, "begun", requests->begun);
    json_key_u64(&w, "finished", requests->finished);
    json_key_u64(&w, "abandoned", requests->abandoned);
    json_key_array(&w, "answers");
    for (size_t i = 0; i < REQUESTS_IN_FLIGHT_MAX; i++) {
        if (requests->slots[i].target != NULL) {
            write_slot(&w, &requests->slots[i], now_ms);
        }
    }
    json_end_array(&w);
    mutex_unlock(&requests->mutex);
    return json_finish(&w) == ERR_OK ? ERR_OK : ERR_NO_MEMORY;
}

void requests_in_flight_release(struct requests_in_flight *requests)
{
    (void)pthread_mutex_destroy(&requests->mutex); // cannot fail: no thread holds it
}
