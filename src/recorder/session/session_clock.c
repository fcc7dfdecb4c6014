// SPDX-License-Identifier: MIT
#include "recorder/session/session_clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/sys.h"
#include "host/os/file.h"
#include "host/threads/quiet_thread.h"
#include "host/threads/urgent_turns.h"
#include "session/recorder_wake.h"

// Write the time. Return it, in nanoseconds. The caller has the lock, so time does not run back.
static uint64_t publish(struct session_clock *clock)
{
    const uint64_t elapsed_ns = clock_monotonic_ns() - clock->start_ns;
    const uint64_t now_ms = elapsed_ns / NS_PER_MS;
    clock_gaps_note(&clock->gaps, session_clock_now(clock), now_ms, clock->tick_ns / NS_PER_MS);
    // Release: recorder_wake was read before a word that rests. Else see layout.h; the order of
    // events does not depend on it. But threads have been able to see a time before `now_ms` has it
    // (drain_note_time).
    atomic_store_explicit(&clock->session->header->clock_ms,
                          clock->is_resting ? now_ms | SESSION_CLOCK_RESTS : now_ms,
                          memory_order_release);
    atomic_store_explicit(&clock->now_ms, now_ms, memory_order_release);
    return elapsed_ns;
}

static uint32_t count_wakes(const struct session_clock *clock)
{
    // Acquire: pairs with the release of session_wake_recorder.
    return atomic_load_explicit(&clock->session->header->recorder_wake, memory_order_acquire);
}

// Tick at *elapsed_ns, unless the clock rests. Return whether it does, while recorder_wake is
// *wakes.
static bool tick(struct session_clock *clock, uint64_t *elapsed_ns, uint32_t *wakes)
{
    (void)pthread_mutex_lock(&clock->lock); // cannot fail
    *wakes = clock->seen_wakes;
    const bool is_woken = clock->is_resting && count_wakes(clock) != *wakes;
    clock->is_resting = clock->is_resting && !is_woken;
    const bool is_resting = clock->is_resting;
    if (!is_resting) {
        *elapsed_ns = publish(clock);
    }
    if (is_woken) {                             // after the time, so that who is woken sees it
        (void)eventfd_write(clock->wake_fd, 1); // cannot fail: the count is small
    }
    (void)pthread_mutex_unlock(&clock->lock);
    return is_resting;
}

// A late tick dates events early, and lets threads doubt that the recorder lives. A tick is so
// short that nothing else needs a turn.
static void be_urgent_if_late(struct urgent_turns *urgency, uint64_t due_ns)
{
    const uint64_t now_ns = clock_monotonic_ns();
    urgent_turns_note_wait(urgency, due_ns, now_ns);
    if (urgent_turns_is_late(urgency, now_ns)) {
        (void)urgent_turns_begin(urgency); // without permission as ever
    } else {
        urgent_turns_end(urgency);
    }
}

// Let the kernel note the death of this thread in the session (set_robust_list(2)): it reads our
// list, which is private, and changes the word if it has our id. libc's list of robust mutexes is
// replaced; this thread has none. Without it threads that may make no system call wait longer.
static void begin_life(struct session_clock *clock)
{
    _Atomic uint32_t *life = &clock->session->header->recorder_life;
    clock->life_entry.next = &clock->life.list;
    clock->life = (struct robust_list_head){
        .list.next = &clock->life_entry,
        .futex_offset = (long)((uintptr_t)life - (uintptr_t)&clock->life_entry)};
    atomic_store_explicit(life, (uint32_t)gettid(), memory_order_relaxed); // it orders nothing
    (void)syscall(SYS_set_robust_list, &clock->life, sizeof(clock->life)); // see above
}

// A thread that ends in order is not dead: the recorder goes on.
static void end_life(struct session_clock *clock)
{
    atomic_store_explicit(&clock->session->header->recorder_life, 0, memory_order_relaxed);
}

static void *run(void *argument)
{
    struct session_clock *clock = argument;
    begin_life(clock);
    struct pollfd watched[] = {{.fd = -1, .events = POLLIN},
                               {.fd = clock->program_fd, .events = POLLIN},
                               {.fd = -1, .events = POLLIN},
                               {.fd = clock->stop_fd, .events = POLLIN}};
    bool has_answered = true; // all clients; else it tries again at the next tick
    struct urgent_turns urgency = {0};
    while (watched[3].revents == 0) {
        uint64_t elapsed_ns = 0;
        uint32_t wakes;
        if (tick(clock, &elapsed_ns, &wakes)) {
            (void)sys_futex_wait(&clock->session->header->recorder_wake, wakes,
                                 NULL); // the reason for waking does not matter: we check
            continue;
        }
        session_open_door(clock->session);
        watched[0].fd = has_answered ? clock->session->socket : -1;
        watched[2].fd = has_answered && clock->session->door > 0 ? clock->session->door : -1;
        has_answered = true;
        const struct timespec rest = {.tv_nsec =
                                          (long)(clock->tick_ns - elapsed_ns % clock->tick_ns)};
        const uint64_t due_ns = clock->start_ns + elapsed_ns + (uint64_t)rest.tv_nsec;
        const int ready = ppoll(watched, ARRAY_LEN(watched), &rest, NULL);
        be_urgent_if_late(&urgency, due_ns);
        if (ready <= 0) {
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
    end_life(clock);
    return NULL;
}

static void close_all(struct session_clock *clock)
{
    fd_closep(&clock->stop_fd);
    fd_closep(&clock->wake_fd);
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
                                    .stop_fd = eventfd(0, EFD_CLOEXEC),
                                    .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                    .lock = PTHREAD_MUTEX_INITIALIZER};
    session->header->clock_start_ns = clock->start_ns;
    const int failure = clock->stop_fd < 0 || clock->wake_fd < 0
                            ? errno
                            : quiet_thread_start(&clock->thread, run, clock);
    if (failure != 0) {
        close_all(clock);
        return err_set_errno(info, failure, "cannot start the recorder's clock");
    }
    clock->is_running = true;
    return ERR_OK;
}

void session_clock_stop(struct session_clock *clock)
{
    if (clock->is_running) {
        session_clock_go_on(clock);
        (void)eventfd_write(clock->stop_fd, 1);  // the end of a run should not wait for a tick
        (void)pthread_join(clock->thread, NULL); // own thread, joined once
        close_all(clock);
        clock->is_running = false;
    }
}

bool session_clock_rest(struct session_clock *clock)
{
    eventfd_t unused;
    (void)pthread_mutex_lock(&clock->lock); // cannot fail
    const bool was_woken = eventfd_read(clock->wake_fd, &unused) == 0 ||
                           (clock->is_resting && count_wakes(clock) != clock->seen_wakes);
    if (!was_woken && !clock->is_resting) {
        clock->is_resting = true;
        clock->seen_wakes = count_wakes(clock);
    }
    if (!was_woken) {
        (void)publish(clock);
    }
    (void)pthread_mutex_unlock(&clock->lock);
    return !was_woken;
}

void session_clock_set(struct session_clock *clock)
{
    (void)pthread_mutex_lock(&clock->lock); // cannot fail
    (void)publish(clock);
    (void)pthread_mutex_unlock(&clock->lock);
}

uint64_t session_clock_error_ms(struct session_clock *clock, uint64_t read_ms)
{
    (void)pthread_mutex_lock(&clock->lock); // cannot fail
    (void)publish(clock); // ends the gap of a stop that the caller has left before the thread
    const uint64_t error_ms = clock_gaps_error_ms(&clock->gaps, read_ms);
    (void)pthread_mutex_unlock(&clock->lock);
    return error_ms;
}

void session_clock_go_on(struct session_clock *clock)
{
    eventfd_t unused;
    (void)pthread_mutex_lock(&clock->lock);      // cannot fail
    (void)eventfd_read(clock->wake_fd, &unused); // or there was nothing to read
    const bool was_resting = clock->is_resting;
    clock->is_resting = false;
    if (was_resting) {
        (void)publish(clock);
    }
    (void)pthread_mutex_unlock(&clock->lock);
    if (was_resting) {
        session_wake_recorder(clock->session->header);
    }
}
