// SPDX-License-Identifier: MIT
#include "inject/descriptor_gift.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "inject/process/target_refusal.h"
#include "session/agent_page.h"

// What the calls need in the target's memory; addresses are the target's.
struct scratch {
    int sockets[2];
    struct msghdr message;
    struct iovec body;
    uint64_t byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
};
_Static_assert(sizeof(struct scratch) <= AGENT_SCRATCH_WORDS * sizeof(uint64_t), "it fits");

#define SCRATCH_ADDR(field) (scratch_addr + offsetof(struct scratch, field))

static enum err refused(const struct inject *inject, int errno_value, struct err_info *info)
{
    return errno_value == ESRCH
               ? target_refusal_explain(&inject->target, ERR_NOT_FOUND, info)
               : err_set_errno(info, errno_value, "cannot share memory with process %d",
                               inject->target.pid);
}

// Return the target's socket, or -1. A process whose first thread has ended has its descriptors by
// the others alone.
static int get_socket(const struct target_process *target, int target_socket)
{
    if (target->live_tid == target->pid) {
        return (int)syscall(SYS_pidfd_getfd, target->pidfd, target_socket, 0);
    }
    // PIDFD_THREAD, since Linux 6.9.
    CLEANUP(fd_closep) int thread = (int)syscall(SYS_pidfd_open, target->live_tid, O_EXCL);
    return thread >= 0 ? (int)syscall(SYS_pidfd_getfd, thread, target_socket, 0) : -1;
}

// Send the descriptor through the target's socket.
static bool send_through(const struct inject *inject, int target_socket, int fd)
{
    CLEANUP(fd_closep) int socket = get_socket(&inject->target, target_socket);
    struct scratch local = {.byte = 1};
    local.body = (struct iovec){.iov_base = &local.byte, .iov_len = 1};
    local.message = (struct msghdr){.msg_iov = &local.body,
                                    .msg_iovlen = 1,
                                    .msg_control = local.control.bytes,
                                    .msg_controllen = sizeof(local.control.bytes)};
    local.control.header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd))};
    memcpy(CMSG_DATA(&local.control.header), &fd, sizeof(fd));
    return socket >= 0 && sendmsg(socket, &local.message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

// Let the target receive the descriptor, and close its sockets.
static enum err receive(struct inject *inject,
                        uint64_t scratch_addr,
                        const int sockets[2],
                        int *out_target_fd,
                        struct err_info *info)
{
    struct scratch remote = {
        .message = {.msg_iov = (struct iovec *)(uintptr_t)SCRATCH_ADDR(body),
                    .msg_iovlen = 1,
                    .msg_control = (void *)(uintptr_t)SCRATCH_ADDR(control),
                    .msg_controllen = sizeof(remote.control)},
        .body = {.iov_base = (void *)(uintptr_t)SCRATCH_ADDR(byte), .iov_len = 1},
    };
    struct remote_call calls[] = {
        {.number = SYS_recvmsg,
         .arguments = {(uint64_t)sockets[0], SCRATCH_ADDR(message),
                       MSG_CMSG_CLOEXEC | MSG_DONTWAIT}},
        {.number = SYS_close, .arguments = {(uint64_t)sockets[0]}},
        {.number = SYS_close, .arguments = {(uint64_t)sockets[1]}},
    };
    if (target_process_write(&inject->target, scratch_addr, &remote, sizeof(remote)) != ERR_OK) {
        return refused(inject, EFAULT, info);
    }
    TRY(remote_calls_run(&inject->calls, calls, ARRAY_LEN(calls), info));
    if (calls[0].result < 0) {
        return refused(inject, (int)-calls[0].result, info);
    }
    if (target_process_read(&inject->target, scratch_addr, &remote, sizeof(remote)) != ERR_OK ||
        remote.control.header.cmsg_type != SCM_RIGHTS ||
        remote.control.header.cmsg_len != CMSG_LEN(sizeof(*out_target_fd))) {
        return refused(inject, EMFILE, info); // no room for it: recvmsg(2), MSG_CTRUNC
    }
    memcpy(out_target_fd, CMSG_DATA(&remote.control.header), sizeof(*out_target_fd));
    return ERR_OK;
}

enum err descriptor_gift_send(
    struct inject *inject, uint64_t scratch_addr, int fd, int *out_target_fd, struct err_info *info)
{
    int sockets[2];
    struct remote_call pair = {
        .number = SYS_socketpair,
        .arguments = {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, SCRATCH_ADDR(sockets)}};
    TRY(remote_calls_run(&inject->calls, &pair, 1, info));
    if (pair.result != 0) {
        return refused(inject, (int)-pair.result, info);
    }
    if (target_process_read(&inject->target, SCRATCH_ADDR(sockets), sockets, sizeof(sockets)) !=
        ERR_OK) {
        return refused(inject, EFAULT, info);
    }
    errno = 0;
    if (!send_through(inject, sockets[1], fd)) {
        return refused(inject, errno, info);
    }
    return receive(inject, scratch_addr, sockets, out_target_fd, info);
}
