// SPDX-License-Identifier: MIT
// trim (AArch64): refuses every process; no thread of one can be lent.
#include "attach/trim.h"

bool trim_can_ask(const char *allocator)
{
    (void)allocator;
    return false;
}

enum err trim_ask(struct target_process *target,
                  const struct target_module *module,
                  uint32_t patience_ms,
                  struct trim_answer *out,
                  struct err_info *info)
{
    (void)module;
    (void)patience_ms;
    *out = (struct trim_answer){0};
    return err_set(info, ERR_UNSUPPORTED, "cairn cannot ask the allocator of process %d",
                   target->pid);
}

enum err
trim_run(int pid, uint32_t patience_ms, uint32_t limit_ms, struct trim *out, struct err_info *info)
{
    (void)patience_ms;
    (void)limit_ms;
    *out = (struct trim){0};
    return err_set(info, ERR_UNSUPPORTED,
                   "cairn cannot let process %d give memory back on this machine", pid);
}
