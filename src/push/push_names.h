// SPDX-License-Identifier: MIT
// push_names: the name and the labels of the profiles of each process (push_labels.h).
//
// A process's control group can only be read while it lives, so its name is written when it is
// first seen, and kept.
// Context: H; one thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "profile/model/profile.h"

struct push_name {
    uint64_t key;       // of the process; 0: not written yet
    struct strbuf text; // owned
};

DEFINE_VEC(push_name_vec, struct push_name);

struct push_names {
    const char *const *labels; // borrowed; push_labels.h
    size_t label_count;
    struct push_name_vec names; // owned; by process of the recording; the last one is of several
};

void push_names_release(struct push_names *names);

// Note the processes of a checkpoint that are new. ERR_NO_MEMORY.
enum err push_names_see(struct push_names *names, const struct profile *profile) MUST_USE;

// Return the name of a process that was seen; of several processes for REC_NONE.
const char *push_names_of(const struct push_names *names, uint32_t process);
