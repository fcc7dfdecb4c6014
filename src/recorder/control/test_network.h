// SPDX-License-Identifier: MIT
// test_network: a network of a test program's own. `cairn ctl` asks each recorder whose socket it
// finds, so one that runs beside the test would ask the sockets of the test, too.
//
// Context: tests only.
#pragma once

#include <sched.h>

// Where the system refuses namespaces, the test shares the network.
static inline int leave_network(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNET) != 0) {
        (void)unshare(CLONE_NEWUSER | CLONE_NEWNET);
    }
    return 0;
}
