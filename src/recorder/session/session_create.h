// SPDX-License-Identifier: MIT
// session_create: makes the memory of a session, and hands it to the processes that join.
//
// The memory is a sparse memfd, sealed against shrinking, so that a recorded program cannot remove
// it while the recorder uses it. Most processes open it through /proc. A process that cannot
// requests it at an abstract socket (session_env.h), and gets it if it runs as our user or descends
// from us.
// Context: H. session_answer may run in another thread than the rest.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "session/books/free_rows.h"
#include "session/layout.h"
#include "session/session_env.h"

struct session_options {
    uint32_t flags; // enum session_flags
    uint32_t max_frames;
    uint64_t sample_bytes; // session_header
    uint64_t sample_seed;
};

// Zeroed is valid and means: none.
struct session {
    void *memory;                  // owned: SESSION_BYTES
    struct session_header *header; // the same memory
    struct words_file *words;      // owned: behind the lanes
    uint32_t pid_namespace;        // inode number of ours, 0 if it cannot be seen
    int memfd;                     // owned; close-on-exec
    int socket;                    // owned; listening, close-on-exec, non-blocking
    int door;                      // owned; its twin in the file system; 0: none
    char door_path[DOOR_PATH_BYTES];
    char environment[SESSION_ENV_BYTES_MAX]; // value of SESSION_ENV_NAME
};

// Make a session in state SESSION_STARTING with its clock at 0.
enum err session_create(const struct session_options *options,
                        struct session *out,
                        struct err_info *info) MUST_USE;

// Wipe the words of a process that has ended, by its number there, and free its regions.
void session_wipe_words(const struct session *session, uint32_t number);

// Map the list of free numbers of a process's rows, by its number in the words, and tell the
// process that there is one. NULL: it has no entries, or the kernel refuses. The caller unmaps it.
struct free_rows *session_map_free_rows(const struct session *session, uint32_t number);
void session_unmap_free_rows(struct free_rows *rows);

// Unmap and close; recorded processes keep their mapping. The caller sets SESSION_ENDED before.
// Give back the memory of all words: recording is over. Processes that live keep their mapping.
void session_give_words_back(const struct session *session);

void session_release(struct session *session);

// Open the door if a process requests it (session_door.h). On failure the process is notified.
void session_open_door(struct session *session);

// Remove the door from the file system. No effect if there is none.
void session_close_door(struct session *session);

// Answer all processes that wait at the socket and at the door. Never blocks: a process that does
// not receive its answer is skipped. False: some still wait, for want of a descriptor.
bool session_answer(const struct session *session) MUST_USE;

// Return the memory of a drained lane to the system and free the lane for the next thread. Its
// contents read as zero afterwards.
void session_recycle_lane(const struct session *session, uint32_t lane);

// Set session_header.recycled_lanes; wake the threads that wait for it (lane_backlog.h).
void session_note_unread(const struct session *session, uint32_t recycled);
