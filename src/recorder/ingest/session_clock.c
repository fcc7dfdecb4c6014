// SPDX-License-Identifier: MIT
#include "recorder/ingest/session_clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/quiet_thread.h"
#include "session/recorder_wake.h"

static void *run(void *argument)
{
    struct session_clock *clock = argument;
    struct pollfd watched[] = {{.fd = -1, .events = POLLIN},
                               {.fd = clock->program_fd, .events = POLLIN},
                               {.fd = -1, .events = POLLIN},
                               {.fd = clock->stop_fd, .events = POLLIN}};
    bool has_answered = true; // all clients; else it tries again at the next tick
    while (watched[3].revents == 0) {
        const uint64_t elapsed_ns = clock_monotonic_ns() - clock->start_ns;
        const uint64_t now_ms = elapsed_ns / NS_PER_MS;
        // Relaxed: see layout.h; the order of events does not depend on it. But threads have been
        // able to see a time before this thread publishes it (drain_note_time).
        atomic_store_explicit(&clock->session->header->clock_ms, now_ms, memory_order_relaxed);
        atomic_store_explicit(&clock->now_ms, now_ms, memory_order_release);
        session_open_door(clock->session);
        watched[0].fd = has_answered ? clock->session->socket : -1;
        watched[2].fd = has_answered && clock->session->door > 0 ? clock->session->door : -1;
        has_answered = true;
        const struct timespec rest = {.tv_nsec =
                                          (long)(clock->tick_ns - elapsed_ns % clock->tick_ns)};
        if (ppoll(watched, ARRAY_LEN(watched), &rest, NULL) <= 0) {
            continue;
        }
        if (watched[0].revents != 0 || watched[2].revents != 0) {
            has_answered = session_answer(clock->session);
        }
        if (watched[1].revents != 0) {
            watched[1].fd = -1; // it ends once, and stays readable
            session_wake_recorder(clock->session->header);
        }
    }
    return NULL;
}

enum err session_clock_start(struct session_clock *clock,
                             struct session *session,
                             int program_fd,
                             uint32_t tick_ms,
                             struct err_info *info)
{
    *clock = (struct session_clock){.session = session,
                                    .program_fd = program_fd,
                                    .start_ns = clock_monotonic_ns(),
                                    .tick_ns = tick_ms * NS_PER_MS,
                                    .stop_fd = eventfd(0, EFD_CLOEXEC)};
    const int failure = clock->stop_fd < 0 ? errno : quiet_thread_start(&clock->thread, run, clock);
    if (failure != 0) {
        fd_closep(&clock->stop_fd);
        return err_set_errno(info, failure, "cannot start the recorder's clock");
    }
    clock->is_running = true;
    return ERR_OK;
}

void session_clock_stop(struct session_clock *clock)
{
    if (clock->is_running) {
        (void)eventfd_write(clock->stop_fd, 1);  // the end of a run should not wait for a tick
        (void)pthread_join(clock->thread, NULL); // own thread, joined once
        fd_closep(&clock->stop_fd);
        clock->is_running = false;
    }
}
