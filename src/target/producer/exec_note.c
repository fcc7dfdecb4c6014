// SPDX-License-Identifier: MIT
#include "target/producer/exec_note.h"

#include <stddef.h>
#include <time.h>

#include "base/sys.h"
#include "session/recorder_wake.h"
#include "target/producer/waiting/recorder_liveness.h"

enum {
    FOLLOW_WAIT_MS = 15000,
    FOLLOW_NAP_NS = 20000000,
};

// Claim an entry to fill in, or return NULL.
static struct exec_note *claim(struct session_header *session, uint64_t first)
{
    for (uint64_t i = 0; i < SESSION_EXEC_NOTES; i++) {
        struct exec_note *note =
            session_exec_note(session, (uint32_t)((first + i) % SESSION_EXEC_NOTES));
        uint32_t expected = EXEC_NOTE_FREE;
        // Acquire: the recorder has read the earlier contents before it gave the entry back.
        if (atomic_compare_exchange_strong_explicit(&note->state, &expected, EXEC_NOTE_CLAIMED,
                                                    memory_order_acquire, memory_order_relaxed)) {
            return note;
        }
    }
    return NULL;
}

static struct exec_note *claim_for_exec(struct session_header *session, uint64_t first)
{
    struct exec_note *note = claim(session, first);
    if (note == NULL) {
        session_count(session, NOTE_unnamed_execs, 1);
    }
    return note;
}

// Copy the end of a path, which is more informative than its beginning.
static void copy_path(char to[static EXEC_NOTE_PATH_BYTES], const char *path)
{
    const size_t length = __builtin_strlen(path);
    const char *from =
        length < EXEC_NOTE_PATH_BYTES ? path : path + length - (EXEC_NOTE_PATH_BYTES - 1);
    size_t at = 0;
    for (; from[at] != '\0'; at++) {
        to[at] = from[at];
    }
    to[at] = '\0';
}

static void publish(struct session_header *session, struct exec_note *note)
{
    note->joins = atomic_load_explicit(&session->join_count, memory_order_relaxed);
    note->time_ms = session_now_ms(session);
    // Release: all fields are final for a recorder that acquires READY.
    atomic_store_explicit(&note->state, EXEC_NOTE_READY, memory_order_release);
    // Release: a recorder that sees this count finds the note. The count that gave the note its
    // number does not do, because the recorder may have looked before there was a note.
    (void)atomic_fetch_add_explicit(&session->exec_count, 1, memory_order_release);
}

// Wait for R's answer to the note. If the entry has another number R has freed it.
static bool await_tracer(struct session_header *session,
                         struct exec_note *note,
                         const struct exec_notice *notice,
                         uint64_t number)
{
    const struct timespec nap = {.tv_nsec = FOLLOW_NAP_NS};
    struct patience patience;
    patience_init_without_lane(&patience, session, notice->pid_namespace);
    session_wake_recorder(session);
    uint32_t answer = EXEC_FOLLOW_WANTED;
    // Relaxed, here and below: the answer guards no other data.
    while ((answer = atomic_load_explicit(&note->follow, memory_order_relaxed)) ==
               EXEC_FOLLOW_WANTED &&
           __atomic_load_n(&note->number, __ATOMIC_RELAXED) == number) {
        const bool is_dead = patience_is_over(&patience, session, NULL);
        if (is_dead) {
            session_abandon(session);
        }
        if (is_dead || session_is_over(session) || patience.unread_ms > FOLLOW_WAIT_MS) {
            (void)atomic_compare_exchange_strong_explicit(&note->follow, &answer, EXEC_FOLLOW_LEFT,
                                                          memory_order_relaxed,
                                                          memory_order_relaxed);
            break;
        }
        (void)sys_futex_wait(&note->follow, EXEC_FOLLOW_WANTED,
                             &nap); // we check, whatever wakes us
    }
    return answer == EXEC_FOLLOW_TRACED;
}

bool exec_note_may_follow(const struct session_header *session, enum exec_obstacle obstacle)
{
    return (session->flags & SESSION_FOLLOW_EXECS) != 0 &&
           (obstacle == EXEC_STATIC || obstacle == EXEC_LIBC || obstacle == EXEC_AGENT);
}

uint64_t
exec_note_put(struct session_header *session, const struct exec_notice *notice, bool *out_is_traced)
{
    *out_is_traced = false;
    // Relaxed: the number only has to be another one.
    const uint64_t number =
        1 + atomic_fetch_add_explicit(&session->exec_count, 1, memory_order_relaxed);
    struct exec_note *note =
        notice->has_loaded ? claim(session, number) : claim_for_exec(session, number);
    if (note == NULL) {
        return 0;
    }
    note->obstacle = notice->obstacle;
    __atomic_store_n(&note->number, number, __ATOMIC_RELAXED); // await_tracer may read it
    note->pid = notice->pid;
    note->pid_namespace = notice->pid_namespace;
    note->thread_id = notice->is_to_be_followed ? (uint32_t)sys_gettid() : 0;
    note->makes_child = notice->makes_child;
    note->has_loaded = notice->has_loaded;
    atomic_store_explicit(&note->follow,
                          notice->is_to_be_followed ? EXEC_FOLLOW_WANTED : EXEC_FOLLOW_NO,
                          memory_order_relaxed);
    copy_path(note->path, notice->path);
    publish(session, note);
    *out_is_traced = notice->is_to_be_followed && await_tracer(session, note, notice, number);
    return number;
}

void exec_note_take_back(struct session_header *session, uint64_t number)
{
    if (number == 0) {
        return;
    }
    struct exec_note *note = claim_for_exec(session, number);
    if (note != NULL) {
        note->obstacle = EXEC_NONE;
        note->has_loaded = 0;
        __atomic_store_n(&note->number, number, __ATOMIC_RELAXED);
        atomic_store_explicit(&note->follow, EXEC_FOLLOW_NO, memory_order_relaxed);
        publish(session, note);
    }
}
