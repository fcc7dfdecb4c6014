// SPDX-License-Identifier: MIT
// attach (AArch64): refuses every process; there is no agent for this machine.
#include "attach/attach.h"

bool attach_is_possible(void)
{
    return false;
}

enum err attach_hold_begin(struct fresh_start *child, struct err_info *info)
{
    return err_set(info, ERR_UNSUPPORTED, "cairn cannot hold process %d on this machine",
                   child->pid);
}

enum err attach_hold_run(struct fresh_start *child, struct err_info *info)
{
    return err_set(info, ERR_UNSUPPORTED, "process %d is not held", child->pid);
}

bool attach_hold_has_ended(const struct fresh_start *child)
{
    (void)child; // it was never held
    return false;
}

void attach_hold_release(const struct fresh_start *child)
{
    (void)child; // it was never held
}

enum err attach_open(struct attach *attach,
                     int pid,
                     const struct attach_options *options,
                     struct err_info *info)
{
    (void)options;
    *attach = (struct attach){0};
    return err_set(info, ERR_UNSUPPORTED,
                   "cairn cannot attach to process %d on this machine; start the program with "
                   "'cairn PROGRAM'",
                   pid);
}

enum err attach_begin(struct attach *attach, int session_fd, struct err_info *info)
{
    (void)session_fd;
    return err_set(info, ERR_UNSUPPORTED, "process %d is not open", attach->inject.target.pid);
}

enum err
attach_late(struct attach *attach, const struct attach_options *options, struct err_info *info)
{
    (void)options;
    return err_set(info, ERR_UNSUPPORTED, "process %d is not open", attach->inject.target.pid);
}

enum err attach_late_copy(struct attach *attach,
                          int pid,
                          const struct attach_options *options,
                          struct err_info *info)
{
    return attach_open(attach, pid, options, info);
}

enum err attach_end(struct attach *attach, struct err_info *info)
{
    (void)attach; // nothing was changed
    (void)info;
    return ERR_OK;
}

enum err attach_end_copy(int pid, struct err_info *info)
{
    (void)pid; // nothing was changed
    (void)info;
    return ERR_OK;
}

void attach_release(struct attach *attach)
{
    *attach = (struct attach){0};
}
