// SPDX-License-Identifier: MIT
// recorder_control: answers the requests of `cairn ctl`. See control_socket.h and run_control.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/text/format.h"
#include "host/text/number.h"
#include "recorder/recorder_snapshots.h"
#include "recorder/recorder_state.h"

struct request {
    struct recorder_state *s;
    uint64_t now_ms;
    const char *text; // what follows the word
    struct strbuf *reply;
    struct err_info info; // why it is refused
};

// Refuse with one sentence.
static uint64_t refuse(struct request *r)
{
    strbuf_clear(r->reply);
    strbuf_append_char(r->reply, '-');
    strbuf_append_text(r->reply, err_text(&r->info));
    return 0;
}

static uint64_t accept(struct request *r, const char *text)
{
    strbuf_append_char(r->reply, '+');
    strbuf_append_text(r->reply, text);
    return 0;
}

// The pid of a process that has ended may be another process's by now.
static bool records_pid(const struct recorder_state *s, const char *text)
{
    const uint64_t pid = number_field(text);
    const bool is_started = !s->is_attached && !s->has_ended;
    if (pid == (uint64_t)getpid() || (is_started && pid == (uint64_t)s->program.pid)) {
        return true;
    }
    for (size_t i = 0; i < s->attached.len; i++) {
        const struct attached_process *process = &s->attached.items[i];
        if (!process->has_ended && pid == (uint64_t)process->attach->inject.target.pid) {
            return true;
        }
    }
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && !process->is_dead && pid == (uint64_t)process->pid) {
            return true;
        }
    }
    return false;
}

static uint64_t answer_is(struct request *r)
{
    const bool is_us = r->text[0] == '/' ? strcmp(r->text, strbuf_text(&r->s->output_absolute)) == 0
                                         : records_pid(r->s, r->text);
    strbuf_append_char(r->reply, is_us ? '+' : '-');
    return 0;
}

static uint64_t answer_start(struct request *r)
{
    return run_control_start(&r->s->control, r->now_ms, &r->info) == ERR_OK ? accept(r, "recording")
                                                                            : refuse(r);
}

static uint64_t clock_of(void *context)
{
    return session_clock_now(context);
}

static uint64_t answer_stop(struct request *r)
{
    return run_control_stop(&r->s->control, clock_of, &r->s->clock, &r->info) == ERR_OK
               ? accept(r, "stopped")
               : refuse(r);
}

static uint64_t answer_detach(struct request *r)
{
    if (!r->s->is_attached) {
        (void)err_set(&r->info, ERR_INVALID,
                      "cairn started this program; 'cairn ctl FILE stop' stops recording");
        return refuse(r);
    }
    r->s->is_stopped = true; // the loop sees it in this round
    return accept(r, "detaching");
}

// Of `record --follow`: record one more process. The answer is "known", or "later": ask again.
static uint64_t answer_attach(struct request *r)
{
    static const char *const words[] = {[JOIN_KNOWN] = "known", [JOIN_LATER] = "later"};
    enum join_result result = JOIN_KNOWN;
    if (!r->s->is_attached || r->s->has_ended || r->s->is_stopped) {
        return accept(r, "later"); // to the next recorder
    }
    const uint64_t pid = number_field(r->text);
    const enum err err = pid == 0 || pid > INT32_MAX
                             ? err_set(&r->info, ERR_INVALID, "'%.20s' is not a process", r->text)
                             : recorder_attach_join(r->s, (int)pid, &result, &r->info);
    if (err != ERR_OK) {
        recorder_attach_omit(r->s, &r->info);
        return refuse(r);
    }
    return accept(r, words[result]);
}

static uint64_t answer_checkpoint(struct request *r)
{
    // The reply comes when the file is written.
    return checkpoint_request(&r->s->checkpoint, r->now_ms);
}

static uint64_t answer_mark(struct request *r)
{
    if (run_control_mark(&r->s->control, r->now_ms, r->text, &r->info) != ERR_OK) {
        return refuse(r);
    }
    accept(r, "");
    strbuf_printf(r->reply, "marked at %" PRIu64 ".%03" PRIu64 " s", r->now_ms / 1000,
                  r->now_ms % 1000);
    return 0;
}

static uint64_t answer_snapshot(struct request *r)
{
    if (r->s->has_work_aside) {
        return CONTROL_LATER; // one reading after another
    }
    if (recorder_snapshots_now(r->s, r->now_ms) != ERR_OK) {
        return refuse(r);
    }
    if (r->s->memory_snapshots.last.time_ms != r->now_ms) {
        (void)err_set(&r->info, ERR_NOT_FOUND, "there is no process whose memory map can be read");
        return refuse(r);
    }
    accept(r, "");
    strbuf_printf(
        r->reply, "took a snapshot of %s at %" PRIu64 ".%03" PRIu64 " s: %" PRIu64 " KiB",
        format_things(r->s->memory_snapshots.last.memory_snapshots.len, "process", "processes")
            .text,
        r->now_ms / 1000, r->now_ms % 1000, r->s->memory_snapshots.last.rss_bytes / 1024);
    return 0;
}

static uint64_t answer_rotate(struct request *r)
{
    const uint64_t number = answer_checkpoint(r);
    rotation_await(&r->s->rotation, number);
    return number;
}

static uint64_t answer_reload(struct request *r)
{
    const struct recorder_callbacks *callbacks = &r->s->options->callbacks;
    const enum err err = callbacks->reload != NULL
                             ? callbacks->reload(callbacks->context, &r->info)
                             : err_set(&r->info, ERR_UNSUPPORTED, "there is nothing to reload");
    return err == ERR_OK ? accept(r, "") : refuse(r);
}

// After "reload": its result, or nothing while there is none. The recorder does not wait for it.
static uint64_t answer_reloaded(struct request *r)
{
    const struct recorder_callbacks *callbacks = &r->s->options->callbacks;
    if (callbacks->has_reloaded == NULL || !callbacks->has_reloaded(callbacks->context, &r->info)) {
        return accept(r, "");
    }
    return r->info.code == ERR_OK ? accept(r, "reloaded") : refuse(r);
}

// Answer with the number of what has happened when it is not the one that the client knows.
static uint64_t answer_change(struct request *r)
{
    if (r->text[0] != '\0' && number_field(r->text) == r->s->activity_number) {
        return CONTROL_CHANGE;
    }
    strbuf_printf(r->reply, "+%" PRIu64, r->s->activity_number);
    return 0;
}

// Write one "key<TAB>value" a line.
static uint64_t answer_status(struct request *r)
{
    static const char *const states[] = {[SESSION_RECORD_ALL] = "recording",
                                         [SESSION_RECORD_FREES] = "stopped",
                                         [SESSION_RECORD_NOTHING] = "not started",
                                         [SESSION_RECORD_SAMPLE] = "recording",
                                         [SESSION_RECORD_SAMPLE_FREES] = "stopped"};
    const struct {
        const char *key;
        uint64_t value;
    } figures[] = {
        {"recorder_pid", (uint64_t)getpid()},
        {"program_pid", (uint64_t)r->s->program.pid},
        {"processes", r->s->drain.process_count},
        {"runtime_ms", r->now_ms},
        {"allocations", r->s->aggregator.totals.sums.allocations},
        {"live_bytes", r->s->aggregator.totals.sums.live_bytes},
        {"peak_bytes", r->s->aggregator.totals.peak_bytes},
        {"checkpoints", r->s->checkpoint.written_count},
        {"marks", r->s->aggregator.marks.marks.len},
    };
    accept(r, "state\t");
    strbuf_append_text(r->reply, states[r->s->control.recording]);
    strbuf_printf(r->reply, "\nfile\t%s\n", strbuf_text(&r->s->output_absolute));
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        strbuf_printf(r->reply, "%s\t%" PRIu64 "\n", figures[i].key, figures[i].value);
    }
    return 0;
}

static uint64_t answer(void *context, const char *word, const char *text, struct strbuf *reply)
{
    static const struct {
        const char *word;
        uint64_t (*answer)(struct request *r);
    } answers[] = {
        {"is", answer_is},         {"start", answer_start},           {"stop", answer_stop},
        {"mark", answer_mark},     {"checkpoint", answer_checkpoint}, {"rotate", answer_rotate},
        {"status", answer_status}, {"snapshot", answer_snapshot},     {"detach", answer_detach},
        {"attach", answer_attach}, {"reload", answer_reload},         {"reloaded", answer_reloaded},
        {"change", answer_change},
    };
    struct recorder_state *s = context;
    struct request r = {
        .s = s, .now_ms = session_clock_now(&s->clock), .text = text, .reply = reply};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        if (strcmp(answers[i].word, word) == 0) {
            return answers[i].answer(&r);
        }
    }
    (void)err_set(&r.info, ERR_UNSUPPORTED, "unknown request '%.40s'", word);
    return refuse(&r);
}

// Return whether threads have given the recorder up, and it has not yet said that it goes on: what
// a program does after an answer would be missing.
static bool is_given_up(const struct recorder_state *s)
{
    // Relaxed: the flag orders nothing else.
    return atomic_load_explicit(&s->session.header->state, memory_order_relaxed) ==
           SESSION_ABANDONED;
}

// Give a new number to what has happened since the last pass, and tell those who wait for that.
static void number_activity(struct recorder_state *s)
{
    const struct recorder_activity now = {.busy_passes = s->rest.busy_passes,
                                          .marks = s->aggregator.marks.marks.len,
                                          .rss_moved_ms = s->sampler.moved_ms};
    if (memcmp(&now, &s->activity, sizeof(now)) == 0) {
        return;
    }
    char reply[24];
    s->activity = now;
    (void)snprintf(reply, sizeof(reply), "+%" PRIu64, ++s->activity_number); // fits
    control_socket_announce_change(&s->socket, reply);
}

void recorder_control_answer(struct recorder_state *s)
{
    if (is_given_up(s)) {
        return; // the loop asks again when the gap is over
    }
    const struct control_handler handler = {.context = s, .answer = answer};
    number_activity(s);
    s->is_answering = true; // one after another
    control_socket_poll(&s->socket, &handler);
    s->is_answering = false;
}

void recorder_control_reply_written(struct recorder_state *s, bool is_for_rotation)
{
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    if (s->checkpoint.has_failed) {
        strbuf_printf(&reply, "-%s", err_text(s->checkpoint.report));
    } else if (is_for_rotation && s->rotation.has_failed) {
        strbuf_printf(&reply, "-cannot keep the recording as %s", strbuf_text(&s->rotation.kept));
    } else {
        strbuf_printf(&reply, "+%s %s", is_for_rotation ? "kept as" : "written to",
                      strbuf_text(is_for_rotation ? &s->rotation.kept : &s->output_absolute));
    }
    control_socket_announce(&s->socket, s->checkpoint.ended_count,
                            strbuf_result(&reply) == ERR_OK ? strbuf_text(&reply) : "-no memory");
}
