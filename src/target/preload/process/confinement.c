// SPDX-License-Identifier: MIT
#include "target/preload/process/confinement.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"
#include "target/producer/waiting/recorder_liveness.h"

bool confinement_is_prctl(uint64_t option, uint64_t mode, uint64_t filter)
{
    // An int. The kernel refuses a filter at 0: programs ask so whether it has filters.
    return (uint32_t)option == PR_SET_SECCOMP && (mode != SECCOMP_MODE_FILTER || filter != 0);
}

bool confinement_is_syscall(uint64_t number, uint64_t a, uint64_t b, uint64_t c)
{
    // An unsigned int; the other operations only ask, and so does a filter at 0.
    return number == SYS_prctl
               ? confinement_is_prctl(a, b, c)
               : number == SYS_seccomp && ((uint32_t)a == SECCOMP_SET_MODE_STRICT ||
                                           ((uint32_t)a == SECCOMP_SET_MODE_FILTER && c != 0));
}

static void foresee(void)
{
    struct thread_state *t = thread_way_state();
    if (process_session() == NULL || t == NULL || t->generation != process_generation()) {
        return;
    }
    unwind_thread_foresee(t->unwind);
    process_words_foresee(&g_process->words);
    // Behind the filter no room can be used, nor given back to a program that limits its addresses.
    session_map_leanly(process_mapping());
}

bool confinement_begin(void)
{
    const bool was_forbidden = sys_is_forbidden();
    if (!was_forbidden) {
        patience_measure_turn();
    }
    foresee();
    process_note_confinement();
    sys_forbid(true);
    return was_forbidden;
}

void confinement_end(bool was_forbidden, bool has_succeeded)
{
    sys_forbid(was_forbidden || has_succeeded);
}
