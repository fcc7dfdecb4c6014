// SPDX-License-Identifier: MIT
#include "cli/top/top_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/top/top_feed.h"
#include "cli/top/top_plain.h"
#include "cli/top/top_terminal.h"
#include "host/os/file.h"

enum {
    SIGNAL,
    NEWS,
    KEYS,
    SOURCE_COUNT,
};

struct watch {
    const struct top_watch_options *options;
    struct top_model model; // owned
    struct pollfd sources[SOURCE_COUNT];
    bool is_over; // the user quits, or the output ends
};

static struct top_feed g_feed; // its thread may outlive the rest, see top_feed.h

static void watch_release(struct watch *watch)
{
    top_model_release(&watch->model);
    fd_closep(&watch->sources[SIGNAL].fd);
}

// Block the signals that quit or resize, and return a descriptor that has them. Threads that start
// later inherit the mask.
static MUST_USE enum err catch_signals(int *out_fd, struct err_info *info)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
    sigset_t signals;
    (void)sigemptyset(&signals); // these cannot fail
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        (void)sigaddset(&signals, numbers[i]);
    }
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0 ||
        (*out_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)) < 0) {
        return err_set_errno(info, errno, "cannot catch signals");
    }
    return ERR_OK;
}

static MUST_USE enum err
open_watch(struct watch *watch, const struct top_watch_options *options, struct err_info *info)
{
    const struct top_run *run = options->run;
    const struct top_feed_options feed = {.recorder = run->recorder,
                                          .path = strbuf_text(&run->path),
                                          .recorder_fd = run->recorder_fd,
                                          .sources = options->sources,
                                          .interval_ms = options->interval_ms};
    watch->options = options;
    watch->model.state = TOP_STARTS;
    watch->model.lines = 1;
    watch->model.sort = options->sort;
    TRY(catch_signals(&watch->sources[SIGNAL].fd, info));
    // A reader that goes away ends the output, but not before the recording is left.
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL); // cannot fail
    TRY(top_feed_start(&g_feed, &feed, info));
    watch->sources[NEWS].fd = g_feed.event_fd;
    for (size_t i = 0; i < SOURCE_COUNT; i++) {
        watch->sources[i].events = POLLIN;
    }
    if (options->filter != NULL && top_model_filter(&watch->model, options->filter) != ERR_OK) {
        return ERR_NO_MEMORY;
    }
    return ERR_OK;
}

// Read the signals. Return whether the terminal has another size.
static bool read_signals(struct watch *watch)
{
    struct signalfd_siginfo signal;
    bool is_resized = false;
    while (read(watch->sources[SIGNAL].fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
        is_resized = is_resized || signal.ssi_signo == SIGWINCH;
        watch->is_over = watch->is_over || signal.ssi_signo != SIGWINCH;
    }
    return is_resized;
}

// Take the news into the model. *is_update says whether they are of the recording.
static MUST_USE enum err take_news(struct watch *watch, bool *is_update)
{
    struct top_news news;
    top_feed_take(&g_feed, &news);
    watch->model.state = news.state;
    (void)snprintf(watch->model.message, sizeof(watch->model.message), "%s", news.problem); // fits
    *is_update = news.sample != NULL || news.quiet_ms != 0;
    if (news.sample != NULL) {
        TRY(top_model_take(&watch->model, news.sample));
    }
    return news.quiet_ms != 0 ? top_model_rest(&watch->model, news.quiet_ms) : ERR_OK;
}

static void act_on_key(struct watch *watch, enum top_action action)
{
    struct err_info info = {0};
    switch (action) {
    case TOP_QUIT:
        watch->is_over = true;
        break;
    case TOP_REFRESH:
        top_feed_hurry(&g_feed);
        break;
    case TOP_PAUSE:
        top_feed_pause(&g_feed, watch->model.is_paused);
        break;
    case TOP_END_PROGRAM:
        if (top_run_end_program(watch->options->run, &info) != ERR_OK) {
            (void)snprintf(watch->model.message, sizeof(watch->model.message), "%s",
                           err_text(&info)); // fits
        }
        top_feed_pause(&g_feed, watch->model.is_paused);
        break;
    case TOP_NOTHING:
        break;
    }
}

static MUST_USE enum err read_keys(struct watch *watch)
{
    uint32_t key;
    while (!watch->is_over && top_terminal_key(&key)) {
        enum top_action action = TOP_NOTHING;
        TRY(top_model_key(&watch->model, key, &action));
        act_on_key(watch, action);
    }
    // A terminal that is gone has no keys and stays readable.
    watch->is_over = watch->is_over || (watch->sources[KEYS].revents & (POLLHUP | POLLERR)) != 0;
    return ERR_OK;
}

static MUST_USE enum err show_screen(struct watch *watch, struct top_picture *picture)
{
    const struct top_size size = top_terminal_size();
    watch->model.lines = top_picture_list_lines(size);
    top_model_show_cursor(&watch->model);
    TRY(top_picture_draw(&watch->model, size, picture));
    top_terminal_show(picture);
    return ERR_OK;
}

static MUST_USE enum err watch_screen(struct watch *watch, struct top_picture *picture)
{
    while (!watch->is_over) {
        TRY(show_screen(watch, picture));
        if (poll(watch->sources, SOURCE_COUNT, -1) < 0 && errno != EINTR) {
            return ERR_IO;
        }
        if (read_signals(watch)) {
            top_terminal_resize();
        }
        if ((watch->sources[NEWS].revents & POLLIN) != 0) {
            bool is_update;
            TRY(take_news(watch, &is_update));
        }
        TRY(read_keys(watch)); // also after signals: ncurses has keys of its own
    }
    return ERR_OK;
}

static enum err explain_problem(enum err problem, struct err_info *info)
{
    return problem == ERR_OK || problem == ERR_NO_MEMORY
               ? problem
               : err_set_errno(info, errno, "cannot wait for events");
}

enum err
top_watch_screen(const struct top_watch_options *options, bool *has_ended, struct err_info *info)
{
    CLEANUP(watch_release) struct watch watch = {.sources = {{.fd = -1}}};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    TRY(open_watch(&watch, options, info));
    TRY(top_terminal_open(info));
    watch.sources[KEYS].fd = STDIN_FILENO;
    const enum err problem = watch_screen(&watch, &picture);
    top_terminal_close();
    *has_ended = watch.model.state == TOP_ENDED;
    return explain_problem(problem, info);
}

static MUST_USE enum err watch_plain(struct watch *watch, uint32_t *written)
{
    const struct top_watch_options *options = watch->options;
    const size_t limit = options->limit != 0 ? options->limit : SIZE_MAX;
    while (!watch->is_over) {
        bool is_update = false;
        if (poll(watch->sources, SOURCE_COUNT, -1) < 0 && errno != EINTR) {
            return ERR_IO;
        }
        (void)read_signals(watch); // plain text has no size
        if ((watch->sources[NEWS].revents & POLLIN) != 0) {
            TRY(take_news(watch, &is_update));
        }
        if (is_update) {
            TRY(top_plain_write(&watch->model, limit, stdout));
            watch->is_over = fflush(stdout) != 0 || watch->is_over;
            (*written)++;
        }
        watch->is_over = watch->is_over || watch->model.state > TOP_STARTS ||
                         (options->count != 0 && *written >= options->count);
    }
    return ERR_OK;
}

enum err
top_watch_plain(const struct top_watch_options *options, bool *has_ended, struct err_info *info)
{
    CLEANUP(watch_release) struct watch watch = {.sources = {{.fd = -1}}};
    uint32_t written = 0;
    TRY(open_watch(&watch, options, info));
    watch.sources[KEYS].fd = -1;
    const enum err problem = watch_plain(&watch, &written);
    *has_ended = watch.model.state == TOP_ENDED;
    if (problem == ERR_OK && written == 0 && watch.model.message[0] != '\0') {
        return err_set(info, ERR_IO, "%s", watch.model.message);
    }
    return explain_problem(problem, info);
}
