// SPDX-License-Identifier: MIT
// session_create: makes the memory of a session, and hands it to the processes that join.
//
// The memory is a sparse memfd, sealed against shrinking, so that a recorded program cannot pull it
// away under us. Most processes open it through /proc; those that cannot ask for it at an abstract
// socket, as session_env.h says, and get it if they run as our user or descend from us.
// Context: H. session_answer may run in another thread than the rest.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "session/layout.h"
#include "session/session_env.h"

struct session_options {
    uint32_t flags; // enum session_flags
    uint32_t max_frames;
    bool counts_stamps; // of the session's counter, whatever clock there is: for tests
};

// Zeroed is valid and means: none.
struct session {
    void *memory;                  // owned: SESSION_BYTES
    struct session_header *header; // the same memory
    uint32_t pid_namespace;        // inode number of ours, 0 if it cannot be seen
    uint32_t stamp_source;         // enum session_stamps, and
    uint64_t stamp_base;           // as in the header, which programs may change
    int memfd;                     // owned; close-on-exec
    int socket;                    // owned; listening, close-on-exec, non-blocking
    int door;                      // owned; the same in the file system; 0: none
    char door_path[DOOR_PATH_BYTES];
    char environment[SESSION_ENV_BYTES_MAX]; // value of SESSION_ENV_NAME
};

// Makes a session in state SESSION_STARTING with its clock at 0.
enum err session_create(const struct session_options *options,
                        struct session *out,
                        struct err_info *info) MUST_USE;

// The present moment as a stamp (stamp.h): what was stamped, and seen by us, is not later.
uint64_t session_stamp(const struct session *session);

// Unmaps and closes; recorded processes keep their mapping. The caller sets SESSION_ENDED before.
void session_release(struct session *session);

// Opens the door if a process wants it (session_door.h). Cannot fail: then it is told so.
void session_open_door(struct session *session);

// Takes it out of the file system. Nothing if there is none.
void session_close_door(struct session *session);

// Answers all processes that wait at the socket, and at the door. Never blocks: one that does not
// take its answer is left alone.
void session_answer(const struct session *session);

// Gives the memory of a drained lane back to the system and makes the lane free for the next
// thread. Its contents read as zero afterwards.
void session_recycle_lane(const struct session *session, uint32_t lane);
