// SPDX-License-Identifier: MIT
#include "profile/time/marks.h"

#include "base/compiler.h"

const char *mark_kind_name(uint32_t kind)
{
    static const char *const names[] = {[REC_MARK_USER] = "mark",
                                        [REC_MARK_START] = "start",
                                        [REC_MARK_STOP] = "stop",
                                        [REC_MARK_PHASE] = "phase"};
    return kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}

uint64_t marks_stopped_ms(const struct recording *recording)
{
    uint64_t stopped_ms = 0;
    uint64_t since_ms = 0;
    bool is_stopped = false;
    for (size_t i = 0; i < recording->mark_count; i++) {
        const struct rec_mark *mark = &recording->marks[i];
        if (mark->kind == REC_MARK_STOP && !is_stopped) {
            is_stopped = true;
            since_ms = mark->time_ms;
        } else if (mark->kind == REC_MARK_START && is_stopped) {
            is_stopped = false;
            stopped_ms += mark->time_ms - since_ms;
        }
    }
    const uint64_t end_ms = recording->meta.runtime_ms;
    return is_stopped && end_ms > since_ms ? stopped_ms + end_ms - since_ms : stopped_ms;
}
