// SPDX-License-Identifier: MIT
// side_process: a process beside the recorder, which serves or sends what the recorder writes.
//
//   recorder --fork--> side process
//      |  <-- "it works", or the reason why not
//      |  --> the path of the recording, as soon as it is known
//      |  --> a request to read its own files anew;  <-- its result
//      '- the end of the channel: the recorder has ended, and so does the side process
//
// It is a process of its own: whatever a peer on the network does, the recorder drains the lanes.
// It yields to the program: nice 5, and the first victim if memory runs out. Signals of the
// terminal are the program's.
// Context: H. side_process_start forks, so the caller must have one thread.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct side_process {
    pid_t process; // 0: not started
    int channel;   // owned
};

struct side_process_work {
    const char *name;          // for ps, at most 15 bytes
    const char *what;          // for messages: "the server of --listen"
    uint64_t memory_max_bytes; // for its data; 0: unlimited. Beyond, it lacks memory
    void *context;
    enum err (*begin)(void *context, struct err_info *info); // in the side process
    void (*run)(void *context, int channel); // after a success; returns at the channel's end
};

// Start, and wait until `begin` has returned. Its error, or ERR_DEAD, ERR_IO, with a sentence.
enum err side_process_start(const struct side_process_work *work,
                            struct side_process *out,
                            struct err_info *info) MUST_USE;

// Where the recording will be. A file that is there at the time of the message is an older one: its
// identity comes with the message, because the side process may be slow to take it.
struct side_message {
    bool is_reload;        // a request to read its own files anew, without a path
    uint64_t old_identity; // file_identity; 0: there is none
    char path[PATH_MAX];
};

// Send the side process where the recording will be. Accepts one that was not started or has died.
void side_process_send_path(const struct side_process *side, const char *path);

// Ask the side process to read its own files anew. ERR_DEAD with a sentence.
enum err side_process_ask_reload(const struct side_process *side, struct err_info *info) MUST_USE;

// Take the result of one such request into *out, without waiting. Return false if there is none
// yet. If the side process has ended, it is ERR_DEAD.
bool side_process_take_result(const struct side_process *side, struct err_info *out);

// In the side process: take a message from the recorder. False: the recorder has ended.
bool side_process_receive(int channel, struct side_message *out);

// In the side process: send the result of a request.
void side_process_reply(int channel, const struct err_info *result);

// End the side process: let it finish for at most `grace_ms` after it has seen the end of the
// channel, then kill it. Accepts a zeroed one. Return whether it ran until now, and with a grace
// also whether it ended by itself.
bool side_process_stop(struct side_process *side, uint64_t grace_ms);
