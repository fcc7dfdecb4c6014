// SPDX-License-Identifier: MIT
#include "cli/top/top_feed.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/mutex.h"
#include "host/os/proc_file.h"
#include "host/threads/quiet_thread.h"
#include "recorder/control/control_client.h"

enum {
    COST_FACTOR = 4,         // the pause is this much longer than the work
    END_CHECK_MS = 50,       // until the first look whether a recorder has ended
    END_CHECK_MAX_MS = 1000, // between later ones
    QUIET_MS_MAX = 20000     // for its chart, a sample is replaced then although nothing happened
};

// What the feed's thread knows of the recording.
struct feed_view {
    int change_fd;        // owned; the recorder replies on it when something happens; -1: no sample
    struct strbuf number; // owned; of what had happened before the sample
    uint64_t taken_ms;    // CLOCK_MONOTONIC
    uint64_t runtime_ms;  // of the recording, then
};

static void view_release(struct feed_view *view)
{
    fd_closep(&view->change_fd);
    strbuf_release(&view->number);
}

// Hand over a sample, which may be NULL, and the outcome. Return whether the user sees it: one that
// was begun before a pause would change what he looks at.
static bool hand_over(struct top_feed *feed,
                      struct top_sample *sample,
                      enum top_run_state state,
                      const char *problem)
{
    const uint64_t one = 1;
    mutex_lock(&feed->mutex);
    const bool is_late = state == TOP_RUNS && feed->is_paused && !feed->is_asked_for;
    if (is_late) {
        top_sample_free(sample);
    } else if (sample != NULL) {
        top_sample_free(feed->sample);
        feed->sample = sample;
    }
    feed->state = state;
    feed->quiet_ms = 0;
    (void)snprintf(feed->problem, sizeof(feed->problem), "%s", problem); // a cut one will do
    mutex_unlock(&feed->mutex);
    (void)!write(feed->event_fd, &one, sizeof(one)); // fails only if it is readable already
    return !is_late;
}

// Hand over that nothing has happened since the last sample, unless a pause has begun.
static void hand_over_quiet(struct top_feed *feed, uint64_t runtime_ms)
{
    const uint64_t one = 1;
    mutex_lock(&feed->mutex);
    const bool is_wanted = !feed->is_paused;
    feed->quiet_ms = is_wanted ? runtime_ms : 0;
    mutex_unlock(&feed->mutex);
    if (is_wanted) {
        (void)!write(feed->event_fd, &one, sizeof(one)); // fails only if it is readable already
    }
}

static bool has_ended(const struct top_feed *feed, int patience_ms)
{
    struct pollfd end = {.fd = feed->options.recorder_fd, .events = POLLIN};
    return end.fd < 0 || poll(&end, 1, patience_ms) > 0;
}

// Read the file that a recorder left or leaves behind. It writes its last file after it has closed
// its socket.
static void read_end(struct top_feed *feed)
{
    for (int patience_ms = END_CHECK_MS;; patience_ms *= 2) {
        CLEANUP(top_sample_freep) struct top_sample *sample = NULL;
        struct err_info info = {0};
        patience_ms = patience_ms < END_CHECK_MAX_MS ? patience_ms : END_CHECK_MAX_MS;
        const bool is_end = has_ended(feed, patience_ms); // before the file is read
        const enum err problem =
            top_sample_open(feed->options.path, feed->options.sources, &sample, &info);
        const uint32_t state = problem == ERR_OK ? top_sample_state(sample) : REC_STATE_RUNNING;
        if (!is_end && state == REC_STATE_RUNNING) {
            continue;
        }
        (void)hand_over(feed, TAKE(sample), // seen: it runs no more
                        state == REC_STATE_RUNNING   ? TOP_LOST
                        : state == REC_STATE_STOPPED ? TOP_STOPPED
                                                     : TOP_ENDED,
                        problem != ERR_OK ? err_text(&info) : "");
        return;
    }
}

// Wait for the interval, or until the user is in a hurry.
static void pause_feed(struct top_feed *feed, uint64_t pause_ms)
{
    const uint64_t end_ns = clock_monotonic_ns() + pause_ms * NS_PER_MS;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / NS_PER_S),
                                 .tv_nsec = (long)(end_ns % NS_PER_S)};
    mutex_lock(&feed->mutex);
    int status = 0;
    while (!feed->is_hurried && (feed->is_paused || status == 0)) {
        status = feed->is_paused ? pthread_cond_wait(&feed->wake, &feed->mutex)
                                 : pthread_cond_timedwait(&feed->wake, &feed->mutex, &end);
    }
    feed->is_asked_for = feed->is_hurried;
    feed->is_hurried = false;
    mutex_unlock(&feed->mutex);
}

// Return whether nothing has happened since the last sample, so far as the recorder knows; one that
// is stopped does not. Else `number` is that of what has, if it says so.
static bool is_quiet(const struct top_feed *feed, struct feed_view *view)
{
    if (view->change_fd < 0) {
        return false;
    }
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    const enum err heard = control_take(view->change_fd, &reply);
    // Who asks for a sample may have seen what the recorder is about to see.
    if (heard == ERR_NOT_FOUND && !feed->is_asked_for &&
        !proc_file_is_stopped(feed->options.recorder) &&
        clock_monotonic_ms() - view->taken_ms < QUIET_MS_MAX) {
        return true;
    }
    if (heard == ERR_OK) {
        strbuf_clear(&view->number);
        strbuf_append_text(&view->number, strbuf_text(&reply));
    }
    fd_closep(&view->change_fd);
    return false;
}

// Ask for a reply when something happens after `sample`, which was begun when only that of `number`
// had happened.
static void
await_change(const struct top_feed *feed, struct feed_view *view, const struct top_sample *sample)
{
    view->taken_ms = clock_monotonic_ms();
    view->runtime_ms = sample->summary.runtime_ms;
    if (control_begin(feed->options.recorder, "change", strbuf_text(&view->number),
                      &view->change_fd, NULL) != ERR_OK) {
        view->change_fd = -1; // there is a sample for each interval
    }
}

// Take one sample, or find that the last one is still right. Return false at the end of the
// recording.
static bool take_one(struct top_feed *feed, struct feed_view *view)
{
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    CLEANUP(top_sample_freep) struct top_sample *sample = NULL;
    struct err_info info = {0};
    const struct top_feed_options *options = &feed->options;
    if (is_quiet(feed, view)) {
        hand_over_quiet(feed, view->runtime_ms + clock_monotonic_ms() - view->taken_ms);
        return true;
    }
    const enum err asked =
        options->recorder == 0
            ? ERR_NOT_FOUND
            : control_ask_recorder(options->recorder, "checkpoint", NULL, &reply, &info);
    if (asked == ERR_NOT_FOUND || (asked == ERR_DEAD && has_ended(feed, 0))) {
        read_end(feed);
        return false;
    }
    enum err problem = asked;
    if (asked == ERR_OK) {
        problem = top_sample_open(options->path, options->sources, &sample, &info);
    }
    if (problem == ERR_OK) {
        await_change(feed, view, sample);
    }
    if (!hand_over(feed, TAKE(sample), TOP_RUNS, problem != ERR_OK ? err_text(&info) : "")) {
        fd_closep(&view->change_fd); // what is seen is older
    }
    return true;
}

static void *run_feed(void *context)
{
    struct top_feed *feed = context;
    CLEANUP(view_release) struct feed_view view = {.change_fd = -1};
    for (;;) {
        const uint64_t begin_ms = clock_monotonic_ms();
        if (!take_one(feed, &view)) {
            return NULL;
        }
        const uint64_t work_ms = clock_monotonic_ms() - begin_ms;
        pause_feed(feed, max_u64(feed->options.interval_ms, work_ms * COST_FACTOR));
    }
}

enum err
top_feed_start(struct top_feed *feed, const struct top_feed_options *options, struct err_info *info)
{
    pthread_condattr_t clock;
    pthread_t thread;
    *feed = (struct top_feed){.options = *options, .state = TOP_STARTS, .is_asked_for = true};
    feed->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (feed->event_fd < 0) {
        return err_set_errno(info, errno, "cannot make an event");
    }
    (void)pthread_mutex_init(&feed->mutex, NULL); // these cannot fail on Linux
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&feed->wake, &clock);
    (void)pthread_condattr_destroy(&clock);
    const int problem = quiet_thread_start(&thread, run_feed, feed);
    if (problem != 0) {
        (void)close(feed->event_fd);
        return err_set_errno(info, problem, "cannot start a thread");
    }
    (void)pthread_detach(thread); // cannot fail for a new thread
    return ERR_OK;
}

void top_feed_take(struct top_feed *feed, struct top_news *out)
{
    uint64_t count;
    (void)!read(feed->event_fd, &count, sizeof(count)); // nothing to read is fine
    mutex_lock(&feed->mutex);
    *out =
        (struct top_news){.sample = feed->sample, .quiet_ms = feed->quiet_ms, .state = feed->state};
    (void)snprintf(out->problem, sizeof(out->problem), "%s", feed->problem); // fits
    feed->sample = NULL;
    feed->quiet_ms = 0;
    mutex_unlock(&feed->mutex);
}

void top_feed_pause(struct top_feed *feed, bool is_paused)
{
    mutex_lock(&feed->mutex);
    feed->is_paused = is_paused;
    feed->is_hurried = !is_paused;
    (void)pthread_cond_signal(&feed->wake);
    mutex_unlock(&feed->mutex);
}

void top_feed_hurry(struct top_feed *feed)
{
    mutex_lock(&feed->mutex);
    feed->is_hurried = true;
    (void)pthread_cond_signal(&feed->wake);
    mutex_unlock(&feed->mutex);
}
