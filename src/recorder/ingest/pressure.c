// SPDX-License-Identifier: MIT
// pressure: see the header.
#include "recorder/ingest/pressure.h"

enum {
    SLEEP_PART = 8,   // of a window: a recorder that sleeps more has time left
    OTHERS_PART = 4,  // of the events: if the other lanes bring fewer, only one thread is fast
    EVENTS_MIN = 4096 // in a window; with fewer, something else keeps the recorder busy
};

void pressure_note_sleep(struct pressure *pressure, uint64_t slept_ns)
{
    pressure->slept_ns += slept_ns;
}

bool pressure_is_due(const struct pressure *pressure, uint64_t now_ns)
{
    return now_ns >= pressure->window_end_ns;
}

bool pressure_judge(struct pressure *pressure, uint64_t now_ns, const struct lane_load *load)
{
    const bool is_busy = pressure->slept_ns <= PRESSURE_WINDOW_NS / SLEEP_PART;
    const bool are_several = load->events >= EVENTS_MIN &&
                             load->events - load->busiest_events >= load->events / OTHERS_PART;
    if (is_busy && are_several) {
        pressure->lasts = PRESSURE_LASTS;
    } else if (pressure->lasts > 0) {
        pressure->lasts--;
    }
    pressure->slept_ns = 0;
    pressure->window_end_ns = now_ns + PRESSURE_WINDOW_NS;
    return pressure->lasts > 0;
}
