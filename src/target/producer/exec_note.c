// SPDX-License-Identifier: MIT
// exec_note: see exec_note.h.
#include "target/producer/exec_note.h"

#include <stdbool.h>
#include <stddef.h>

#include "target/producer/session_join.h"

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
    session_count(session, NOTE_unnamed_execs, 1);
    return NULL;
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
    note->time_ms = atomic_load_explicit(&session->clock_ms, memory_order_relaxed);
    // Release: all fields are final for a recorder that acquires READY.
    atomic_store_explicit(&note->state, EXEC_NOTE_READY, memory_order_release);
}

uint64_t exec_note_put(struct session_header *session,
                       enum exec_obstacle obstacle,
                       const char *path,
                       uint32_t pid,
                       uint32_t pid_namespace)
{
    // Relaxed: the count only shows that there are new notes.
    const uint64_t number =
        1 + atomic_fetch_add_explicit(&session->exec_count, 1, memory_order_relaxed);
    struct exec_note *note = claim(session, number);
    if (note == NULL) {
        return 0;
    }
    note->obstacle = obstacle;
    note->number = number;
    note->pid = pid;
    note->pid_namespace = pid_namespace;
    copy_path(note->path, path);
    publish(session, note);
    return number;
}

void exec_note_take_back(struct session_header *session, uint64_t number)
{
    if (number == 0) {
        return;
    }
    (void)atomic_fetch_add_explicit(&session->exec_count, 1, memory_order_relaxed);
    struct exec_note *note = claim(session, number);
    if (note != NULL) {
        note->obstacle = EXEC_NONE;
        note->number = number;
        publish(session, note);
    }
}
