// SPDX-License-Identifier: MIT
// push_labels: the name and the labels of a pushed profile, as Pyroscope takes them.
//
//   server{build_id=4f1c...,env=prod,executable=/srv/server,host=node7,pid=71}
//
// The user's labels come first and win over those that cairn finds: host, build_id, pid and
// executable of the process, and in a container container_id and pod_uid, which are in the path of
// its control group.
// Context: H; pure.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"

// What cairn finds. Texts are borrowed; "" is unknown.
struct push_origin {
    const char *program; // path of the executable of the recorded program
    const char *host;
    const char *build_id;   // of the process
    const char *cgroup;     // content of /proc/PID/cgroup
    const char *executable; // path of that of the process
    uint32_t pid;           // 0: several processes
};

// Check a label of the user, NAME=VALUE. ERR_INVALID with a sentence.
enum err push_label_check(const char *label, struct err_info *info) MUST_USE;

// Return whether two labels that have passed push_label_check have one name.
bool push_labels_are_one(const char *label, const char *other);

// Append the name with its labels. `labels` have passed push_label_check; service_name=NAME is the
// name before the braces, by default the file name of the program. A character that Pyroscope
// refuses there becomes '_', and so does a byte that is not UTF-8. ERR_NO_MEMORY.
enum err push_labels_write(const char *const *labels,
                           size_t count,
                           const struct push_origin *origin,
                           struct strbuf *out) MUST_USE;
