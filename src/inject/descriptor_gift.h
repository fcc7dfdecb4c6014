// SPDX-License-Identifier: MIT
// descriptor_gift: gives a process a descriptor of a file that this process has open.
//
// The process makes a pair of sockets, cairn takes one end (pidfd_getfd(2)), sends the descriptor
// through it, and the process receives it at the other end. So no file must have a name that both
// sides can open, and other users, roots and namespaces make no difference. The structures of the
// calls are in the scratch words of the agent's page.
//
// Context: H. Failure: a sentence; the process may keep descriptors, which an exec closes.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "inject/inject.h"

// Give the target of `inject` a close-on-exec descriptor of what `fd` is here. `scratch_addr`: of
// AGENT_SCRATCH_WORDS words in the target. ERR_IO if the target or the kernel refuses, and the
// errors of remote_calls_run.
enum err descriptor_gift_send(struct inject *inject,
                              uint64_t scratch_addr,
                              int fd,
                              int *out_target_fd,
                              struct err_info *info) MUST_USE;
