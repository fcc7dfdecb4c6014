// SPDX-License-Identifier: MIT
// session_join: finds the session of this process, maps it, and claims a place in it.
//
// How: CAIRN_SESSION (session_env.h) names the recorder's memfd. The process opens it by its /proc
// path or, where that is closed, receives it over the abstract socket. It maps the whole session
// once, shared, and closes the descriptor at once: no file stays open in the target.
//
// Lanes are mapped without access until one is claimed. So mlockall() does not populate gigabytes,
// a stray pointer of the program faults instead of damaging records, and a lane costs page tables
// only when it is used. Where address space is limited (RLIMIT_AS, ulimit -v), or from the moment
// when the program limits it, no room is reserved: then a lane is mapped when it is claimed, for
// which the session has to be found again.
//
// Owns: the mapping, as long as the process lives. Context: T; raw system calls only, errno kept,
// safe in a forked child. Failure: nothing stays mapped or open.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "session/layout.h"
#include "session/session_env.h"

// The two parts of the environment's value, the path ended by a zero byte.
struct session_place {
    char path[SESSION_ENV_BYTES_MAX];
    char socket_name[SESSION_SOCKET_NAME_BYTES_MAX];
    size_t socket_name_len;
};

struct session_mapping {
    struct session_header *header; // NULL: not joined
    uint32_t lane_count;           // lanes that may be claimed, at most SESSION_MAX_LANES
    _Atomic bool is_lean;          // lanes are mapped one by one
    struct session_place place;
};

// Return the limit of this process's address space in bytes; UINT64_MAX: none.
uint64_t session_address_limit(void);

// Map the session that `env_value` (borrowed) names. ERR_INVALID: the value is malformed.
// ERR_NOT_FOUND: neither path nor socket leads to a file. ERR_UNSUPPORTED: the file is not a
// session of this version. ERR_NO_MEMORY: not even the header fits into the address space.
MUST_USE enum err session_join(const char *env_value, struct session_mapping *out);

// Use the session that the recorder has mapped for this process, all of it, instead of an earlier
// one. ERR_UNSUPPORTED: it is not a session of this version.
MUST_USE enum err session_take(struct session_header *header, struct session_mapping *out);

// Open the session's memory again. Return a descriptor, which the caller closes, or -errno.
long session_open_memory(const struct session_place *place);

// Whether a process that begins now, in this place, would find the session that `env_value` names.
bool session_is_reachable(const char *env_value);

// Give back the room of lanes that this process does not use, because the program limits its
// address space.
void session_map_leanly(struct session_mapping *mapping);

// Claim a process slot, and leave it PROCESS_CLAIMED: the caller fills it in and sets it
// PROCESS_ACTIVE (release). ERR_LIMIT: all are taken.
MUST_USE enum err session_claim_process(struct session_header *session, uint32_t *index);

// Claim a lane for thread `thread_id` of process slot `process_index` and open it with the smallest
// ring. ERR_LIMIT: all mapped lanes are taken. ERR_NO_MEMORY: the kernel refuses access.
MUST_USE enum err session_claim_lane(struct session_mapping *mapping,
                                     uint32_t process_index,
                                     uint32_t thread_id,
                                     struct lane_header **out);
