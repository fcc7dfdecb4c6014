// SPDX-License-Identifier: MIT
#include "target/preload/process/confinement.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"

enum confinement confinement_of_prctl(uint64_t option, uint64_t mode)
{
    if ((uint32_t)option != PR_SET_SECCOMP) { // an int
        return CONFINEMENT_NONE;
    }
    return mode == SECCOMP_MODE_STRICT ? CONFINEMENT_STRICT : CONFINEMENT_FILTER;
}

enum confinement confinement_of_syscall(uint64_t number, uint64_t a, uint64_t b)
{
    if (number == SYS_prctl) {
        return confinement_of_prctl(a, b);
    }
    const uint32_t operation = (uint32_t)a;                             // an unsigned int
    if (number != SYS_seccomp || operation > SECCOMP_SET_MODE_FILTER) { // the others only ask
        return CONFINEMENT_NONE;
    }
    return operation == SECCOMP_SET_MODE_STRICT ? CONFINEMENT_STRICT : CONFINEMENT_FILTER;
}

static void foresee(bool is_strict)
{
    struct thread_state *t = thread_way_state();
    if (process_session() == NULL || t == NULL || t->generation != process_generation()) {
        return;
    }
    unwind_thread_foresee(t->unwind);
    process_words_foresee(&g_process->words);
    t->producer.is_clockless |= is_strict;
    if (is_strict && t->producer.is_ordered) {
        thread_state_close(t);
    }
}

bool confinement_begin(enum confinement kind)
{
    const bool was_forbidden = sys_is_forbidden();
    foresee(kind == CONFINEMENT_STRICT);
    process_note_confinement();
    sys_forbid(true);
    return was_forbidden;
}

void confinement_end(bool was_forbidden, bool has_succeeded)
{
    sys_forbid(was_forbidden || has_succeeded);
}
