// SPDX-License-Identifier: MIT
// machine_check: what the settings of a machine allow cairn to do, and the cure where they forbid
// it.
//
// Each check reads a few files of /proc and /sys. That of attaching also traces a child of its own
// for a moment. `cairn self-test` tries the rest.
// Context: H. Trust: the files are the kernel's; a missing one means that the machine lacks what it
// is about.
#pragma once

#include <stddef.h>

#include "host/text/strbuf.h"

enum machine_verdict {
    MACHINE_WORKS,
    MACHINE_LACKS,   // something works less well
    MACHINE_FORBIDS, // something does not work
};

struct machine_result {
    enum machine_verdict verdict;
    struct strbuf detail; // owned; one line
    const char *cure;     // one line; NULL: there is none, or none is needed
};

void machine_result_release(struct machine_result *result);

struct machine_check {
    const char *name;
    // Look below `root`, which is "" but in tests. The caller releases the result.
    struct machine_result (*look)(const char *root);
};

extern const struct machine_check machine_checks[];
extern const size_t machine_check_count;
