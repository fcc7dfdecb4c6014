// SPDX-License-Identifier: MIT
#include "target/producer/waiting/recorder_liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>

#include "base/minmax.h"
#include "base/sys.h"
#include "syscall_arch.h"

enum {
    TURN_PAUSES = 10000,
    TURN_NS = 1000000,
    TURN_PARTS = 16, // of a turn: one is measured, so often:
    MEASUREMENTS = 8,
    PART_CLOCKS_MIN = 4, // a part takes so many times what the clock takes, or is larger
};

static struct {
    _Atomic uint64_t turn_ns; // how long a turn takes; 0: not measured
} g_liveness;

#define STEP_MS_MAX \
    ((uint64_t)2 * LANE_WAIT_MS) // a longer step means that we were stopped ourselves

// Write "/proc/<pid>/stat".
static void format_stat_path(uint32_t pid, char path[static 32])
{
    char digits[10];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + pid % 10);
        pid /= 10;
    } while (pid != 0);
    __builtin_memcpy(path, "/proc/", 6);
    char *at = path + 6;
    while (count > 0) {
        *at++ = digits[--count];
    }
    __builtin_memcpy(at, "/stat", 6);
}

// Read the state, by proc(5): "pid (comm) state ..."; comm may contain any byte, so the last
// parenthesis counts.
static bool is_zombie(uint32_t pid)
{
    char path[32];
    format_stat_path(pid, path);
    const long fd = sys_open(path, O_RDONLY, 0);
    if (sys_failed(fd)) {
        return false;
    }
    char text[128];
    const long got = sys_read((int)fd, text, sizeof(text));
    (void)sys_close((int)fd); // read only
    if (sys_failed(got)) {
        return false;
    }
    for (long i = got - 3; i >= 0; i--) {
        if (text[i] == ')') {
            return text[i + 2] == 'Z' || text[i + 2] == 'X';
        }
    }
    return false;
}

static bool is_dead(const struct patience *p, const struct session_header *session)
{
    const uint32_t pid = session->recorder_pid;
    // The pid is known to be of our namespace; both are 0 where there is no /proc at all.
    return p->pid_namespace == session->recorder_namespace &&
           (sys_kill((int)pid, 0) == -ESRCH || is_zombie(pid));
}

static uint64_t clock_of(const struct session_header *session)
{
    return atomic_load_explicit(&session->clock_ms, memory_order_relaxed);
}

static void pause_often(int count)
{
    for (int i = 0; i < count; i++) {
        arch_pause();
    }
}

static uint64_t measure_pauses(int count)
{
    uint64_t least_ns = UINT64_MAX; // others may take the processor meanwhile
    for (int i = 0; i < MEASUREMENTS; i++) {
        const uint64_t began_ns = sys_monotonic_ns();
        pause_often(count);
        least_ns = min_u64(least_ns, sys_monotonic_ns() - began_ns);
    }
    return least_ns;
}

void patience_measure_turn(void)
{
    const uint64_t clock_ns = measure_pauses(0);
    int parts = TURN_PARTS;
    uint64_t part_ns = measure_pauses(TURN_PAUSES / parts);
    while (part_ns < PART_CLOCKS_MIN * clock_ns && parts > 1) {
        parts /= 2;
        part_ns = measure_pauses(TURN_PAUSES / parts);
    }
    // Relaxed: it guards no other data. Of a thread that may not ask the clock it stays.
    if (part_ns != 0) {
        atomic_store_explicit(&g_liveness.turn_ns, part_ns * (uint64_t)parts, memory_order_relaxed);
    }
}

// Without a clock and sleep, under a seccomp filter, turns are counted. A turn takes as long as
// some pauses of the processor: less than TURN_NS. While the clock rests that would be too short.
static uint64_t now_ns_after(struct patience *p, const struct session_header *session)
{
    if (!sys_is_forbidden()) {
        return sys_monotonic_ns();
    }
    pause_often(TURN_PAUSES);
    const uint64_t measured_ns = atomic_load_explicit(&g_liveness.turn_ns, memory_order_relaxed);
    const bool rests = (clock_of(session) & SESSION_CLOCK_RESTS) != 0;
    p->turns_ns = max_u64(p->turns_ns, p->now_ns) +
                  (rests && measured_ns != 0 ? min_u64(measured_ns, TURN_NS) : TURN_NS);
    return p->turns_ns;
}

static bool has_died(const struct session_header *session)
{
    // Relaxed: it guards no data.
    return (atomic_load_explicit(&session->recorder_life, memory_order_relaxed) &
            FUTEX_OWNER_DIED) != 0;
}

static uint64_t read_pos_of(const struct lane_header *lane)
{
    // Relaxed: only compared.
    return lane != NULL ? atomic_load_explicit(&lane->read_pos, memory_order_relaxed) : 0;
}

void session_abandon(struct session_header *session)
{
    // Relaxed: the flag guards no other data. A recorder that has ended is not dead.
    uint32_t state = atomic_load_explicit(&session->state, memory_order_relaxed);
    if (state < SESSION_ENDED) {
        (void)atomic_compare_exchange_strong_explicit(&session->state, &state, SESSION_ABANDONED,
                                                      memory_order_relaxed, memory_order_relaxed);
    }
}

void patience_init(struct patience *p,
                   struct session_header *session,
                   const struct lane_header *lane)
{
    patience_init_without_lane(p, session,
                               session_process(session, lane->process_index)->pid_namespace);
    p->read_pos = read_pos_of(lane);
}

void patience_init_without_lane(struct patience *p,
                                const struct session_header *session,
                                uint32_t pid_namespace)
{
    *p = (struct patience){.now_ns = sys_monotonic_ns(),
                           .clock_ms = clock_of(session),
                           .pid_namespace = pid_namespace};
}

// Add to *still_ms if `now` is still `*before`, else begin anew.
static void watch(uint64_t *before, uint64_t now, uint64_t *still_ms, uint64_t step_ms)
{
    *still_ms = now == *before ? *still_ms + step_ms : 0;
    *before = now;
}

bool patience_is_over(struct patience *p,
                      struct session_header *session,
                      const struct lane_header *lane)
{
    return has_died(session) || patience_is_over_at(p, session, lane, now_ns_after(p, session));
}

bool patience_is_over_at(struct patience *p,
                         struct session_header *session,
                         const struct lane_header *lane,
                         uint64_t now_ns)
{
    const uint64_t passed_ms = (now_ns - p->now_ns) / 1000000u;
    if (passed_ms == 0) {
        return false; // let the fraction add up
    }
    const uint64_t step_ms = passed_ms < STEP_MS_MAX ? passed_ms : STEP_MS_MAX;
    p->now_ns = now_ns;
    watch(&p->clock_ms, clock_of(session), &p->still_ms, step_ms);
    watch(&p->read_pos, read_pos_of(lane), &p->unread_ms, step_ms);
    if (p->still_ms >= LANE_PATIENCE_MS || p->unread_ms >= LANE_FORGOTTEN_MS) {
        return true;
    }
    return p->still_ms >= LANE_SUSPECT_MS && is_dead(p, session);
}
