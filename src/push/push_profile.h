// SPDX-License-Identifier: MIT
// push_profile: makes profiles of a growing recording, each with what was allocated since the one
// before, and turns them into requests of Pyroscope's ingest API.
//
// An entry of the spool is the query of the request, a line feed, and the profile:
//
//   name=server%7Bhost%3Dnode7%7D&from=1763914209&until=1763914224&spyName=cairn
//   <profile.proto, gzipped>
//
// alloc_objects and alloc_space are those since the previous profile, so a collector may add them
// up; inuse_objects and inuse_space are the state of the checkpoint.
// Context: H; one thread. Trust: an entry of the spool is checked; the recording is the reader's.
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/os/side_process.h"
#include "host/text/strbuf.h"
#include "profile/compare/row_changes.h"
#include "profile/model/profile.h"

struct push_source {
    const struct name_sources *names; // borrowed; may be NULL
    const char *const *labels;        // borrowed; push_labels.h
    size_t label_count;
    char *path;              // owned; of the recording; NULL until it is known
    uint64_t identity;       // of the file that was read last
    uint64_t until_unix_ns;  // of the latest profile; 0: none yet
    struct row_sums history; // owned
    struct strbuf name;      // owned; with the labels
};

// Follow the recording that the message names. ERR_NO_MEMORY.
enum err push_source_set_path(struct push_source *source, const struct side_message *message)
    MUST_USE;

// If there is a new checkpoint, append the entry of a profile and set *order to its time in
// nanoseconds. ERR_NOT_FOUND: there is none. After any other error that profile is lost.
enum err push_source_collect(struct push_source *source,
                             struct strbuf *entry,
                             uint64_t *order,
                             struct err_info *info) MUST_USE;

// A request for an entry.
struct push_request {
    struct strbuf url;  // owned
    struct strbuf body; // owned; multipart/form-data
};

extern const char push_content_type[];

// Make the request to the collector at `base`, which has no query. ERR_INVALID: the entry is not
// one of ours; ERR_NO_MEMORY.
enum err push_request_make(const char *base, struct bytes entry, struct push_request *out) MUST_USE;
void push_request_release(struct push_request *request);
