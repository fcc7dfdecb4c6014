// SPDX-License-Identifier: MIT
// test_recorder: what the tests of the recorder's parts share: its log as a text, and processes
// that it may find.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

// The callback `log`: collect the sentences in the strbuf `context`, a line each.
UNUSED static inline void note_log(void *context, const char *sentence)
{
    struct strbuf *log = context;
    strbuf_append_text(log, sentence);
    strbuf_append_char(log, '\n');
}

// Start a process that does nothing until the test kills it or ends, also by failing.
static inline pid_t sleeping_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            (void)pause();
        }
    }
    assert_true(child > 0);
    return child;
}

static inline void end_child(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}
