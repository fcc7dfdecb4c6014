// SPDX-License-Identifier: MIT
// exit_hooks: the exported functions by which a program ends at once, without exit handlers.
//
// exit() runs our destructor, which notes the moment (start.c). sort, dash, forked workers and many
// others call _exit instead. Without a note the recorder only learns when it found the process
// ended, and the heaps of several short processes seem to exist at the same time.
//
// A child of vfork calls _exit in the memory of its parent, which continues to live: the process id
// distinguishes the two. Context: T, any caller: threads, signal handlers, forked children that
// have not joined.
#include "base/compiler.h"
#include "target/preload/real/real_process.h"
#include "target/preload/record/record_exit.h"

// NOLINTBEGIN(readability-identifier-naming): libc's names
EXPORT void _exit(int status) __attribute__((noreturn));
EXPORT void _Exit(int status) __attribute__((noreturn));

EXPORT void _exit(int status)
{
    record_own_exit();
    for (;;) { // the real one does not return
        g_real_process._exit(status);
    }
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
// NOLINTEND(readability-identifier-naming)
