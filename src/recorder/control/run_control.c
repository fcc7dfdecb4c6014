// SPDX-License-Identifier: MIT
#include "recorder/control/run_control.h"

#include <string.h>

#include "base/minmax.h"

static enum err add_mark(struct run_control *control,
                         uint64_t time_ms,
                         enum rec_mark_kind kind,
                         const char *text,
                         struct err_info *info)
{
    const struct bytes bytes = {.data = (const uint8_t *)text, .len = strlen(text)};
    enum err err = mark_list_add(&control->aggregator->marks, &control->aggregator->strings,
                                 time_ms, kind, bytes);
    if (err == ERR_LIMIT) {
        return err_set(info, ERR_LIMIT, "the recording has %u marks, which is the maximum",
                       MARKS_MAX);
    }
    return err;
}

// Return what hooks do while it records.
static enum session_recording recording_word(const struct run_control *control)
{
    return control->samples ? SESSION_RECORD_SAMPLE : SESSION_RECORD_ALL;
}

// Return what they do after a stop.
static enum session_recording stopped_word(const struct run_control *control)
{
    return control->samples ? SESSION_RECORD_SAMPLE_FREES : SESSION_RECORD_FREES;
}

static void set_recording(struct run_control *control, enum session_recording recording)
{
    control->recording = recording;
    // Relaxed: see enum session_recording.
    atomic_store_explicit(&control->session->recording, recording, memory_order_relaxed);
}

enum err run_control_init(struct run_control *control,
                          const struct run_control_options *options,
                          struct session_header *session,
                          struct aggregator *aggregator)
{
    *control = (struct run_control){.session = session,
                                    .aggregator = aggregator,
                                    .options = *options,
                                    .samples = session->sample_bytes != 0 ||
                                               (session->flags & SESSION_OVERFLOW_SAMPLE) != 0};
    if (options->delay_ms == 0 && !options->is_paused) {
        set_recording(control, recording_word(control));
        return ERR_OK;
    }
    set_recording(control, SESSION_RECORD_NOTHING);
    TRY(aggregator_note_stop(aggregator, (struct aggregator_stop){0}));
    return add_mark(control, 0, REC_MARK_STOP, "", NULL);
}

bool run_control_is_whole(const struct run_control *control)
{
    const struct rec_mark_vec *marks = &control->aggregator->marks.marks;
    for (size_t i = 0; i < marks->len; i++) {
        if (marks->items[i].kind == REC_MARK_STOP) {
            return false;
        }
    }
    return control->options.delay_ms == 0 && !control->options.is_paused;
}

enum err run_control_start(struct run_control *control, uint64_t now_ms, struct err_info *info)
{
    if (control->recording == recording_word(control)) {
        return err_set(info, ERR_INVALID, "recording has already started");
    }
    TRY(add_mark(control, now_ms, REC_MARK_START, "", info));
    if (!run_control_has_started(control)) {
        control->started_ms = now_ms;
    }
    set_recording(control, recording_word(control));
    return ERR_OK;
}

enum err run_control_stop(struct run_control *control,
                          uint64_t (*clock)(void *context),
                          void *context,
                          struct err_info *info)
{
    if (control->recording != recording_word(control)) {
        return err_set(info, ERR_INVALID, "recording is already stopped");
    }
    const uint64_t from_ms = clock(context);
    TRY(add_mark(control, from_ms, REC_MARK_STOP, "", info));
    set_recording(control, stopped_word(control));
    return aggregator_note_stop(
        control->aggregator, (struct aggregator_stop){.from_ms = from_ms, .to_ms = clock(context)});
}

bool run_control_sample(struct run_control *control)
{
    const bool is_new = !control->samples;
    control->samples = true;
    if (control->recording == SESSION_RECORD_ALL) {
        set_recording(control, recording_word(control));
    } else if (control->recording == SESSION_RECORD_FREES) {
        set_recording(control, stopped_word(control));
    }
    return is_new;
}

enum err run_control_note_gap(struct run_control *control, uint64_t from_ms, uint64_t to_ms)
{
    if (control->recording == recording_word(control)) { // else a stop has the marks
        struct err_info full = {0};
        (void)!add_mark(control, from_ms, REC_MARK_STOP, "", &full); // has a bound
        (void)!add_mark(control, to_ms, REC_MARK_START, "", &full);
    }
    return aggregator_note_stop(control->aggregator,
                                (struct aggregator_stop){.from_ms = from_ms, .to_ms = to_ms});
}

enum err run_control_mark(struct run_control *control,
                          uint64_t now_ms,
                          const char *text,
                          struct err_info *info)
{
    if (text[0] == '\0' || strlen(text) > MARK_TEXT_BYTES_MAX) {
        return err_set(info, ERR_INVALID, "a mark needs a text of at most %u bytes",
                       MARK_TEXT_BYTES_MAX);
    }
    return add_mark(control, now_ms, REC_MARK_USER, text, info);
}

// Return when recording starts by itself.
static uint64_t start_ms_of(const struct run_control *control)
{
    const bool starts_by_itself = control->options.delay_ms != 0 && !control->options.is_paused;
    return starts_by_itself && !run_control_has_started(control) ? control->options.delay_ms
                                                                 : UINT64_MAX;
}

static uint64_t end_ms_of(const struct run_control *control)
{
    return control->options.duration_ms != 0 && run_control_has_started(control)
               ? control->started_ms + control->options.duration_ms
               : UINT64_MAX;
}

uint64_t run_control_next_ms(const struct run_control *control)
{
    return min_u64(start_ms_of(control), end_ms_of(control));
}

enum err run_control_tick(struct run_control *control, uint64_t now_ms)
{
    return now_ms >= start_ms_of(control) ? run_control_start(control, now_ms, NULL) : ERR_OK;
}

bool run_control_is_over(const struct run_control *control, uint64_t now_ms)
{
    return now_ms >= end_ms_of(control);
}
