// SPDX-License-Identifier: MIT
// push_profile: makes profiles of a growing recording, each with what one process allocated since
// the checkpoint before, and turns them into requests of Pyroscope's ingest API.
//
// An entry of the spool is the query of the request, a line feed, and the profile. If the profile
// has a smaller form, for a collector that refuses it, the size of that comes first:
//
//   [812 ]name=server%7Bhost%3Dnode7%7D&from=1763914209&until=1763914224&spyName=cairn
//   <profile.proto, gzipped>[<the smaller one: 812 bytes>]
//
// alloc_objects and alloc_space are those since the previous profile, so a collector may add them
// up; inuse_objects and inuse_space are the state of the checkpoint. A profile has at most so many
// samples and bytes as the limits say: first the threads of a process are merged (row_merger.h),
// then the rarest stacks (push_part.h). No sum changes by it.
// Context: H; one thread. Trust: an entry of the spool is checked; the recording is the reader's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/os/side_process.h"
#include "host/text/strbuf.h"
#include "profile/compare/row_changes.h"
#include "profile/model/profile.h"
#include "push/push_limits.h"
#include "push/push_names.h"

struct push_source {
    const struct name_sources *names; // borrowed; may be NULL
    struct push_limits limits;
    char *path;                           // owned; of the recording; NULL until it is known
    uint64_t identity;                    // of the file that was read last
    uint64_t until_unix_ns;               // of the latest profile; 0: none yet
    uint64_t reduced_count;               // profiles in which stacks are added up for the limits
    bool merges_threads;                  // from now on
    struct row_sums history;              // owned
    struct push_names names_of_processes; // with the labels
};

void push_source_release(struct push_source *source);

// Follow the recording that the message names. ERR_NO_MEMORY.
enum err push_source_set_path(struct push_source *source, const struct side_message *message)
    MUST_USE;

// Takes an entry. `order`: its time, in nanoseconds.
typedef void push_take(void *context, uint64_t order, struct bytes entry);

// If there is a new checkpoint, make its entries. ERR_NOT_FOUND: there is none. After any other
// error what was not taken is lost.
enum err push_source_collect(struct push_source *source,
                             push_take *take,
                             void *context,
                             struct err_info *info) MUST_USE;

// A request for an entry.
struct push_request {
    struct strbuf url;  // owned
    struct strbuf body; // owned; multipart/form-data
};

extern const char push_content_type[];

// Make the request to the collector at `base`, which has no query. `is_smaller`: with the smaller
// form. ERR_INVALID: the entry is not one of ours, or has none; ERR_NO_MEMORY.
enum err
push_request_make(const char *base, struct bytes entry, bool is_smaller, struct push_request *out)
    MUST_USE;
void push_request_release(struct push_request *request);
