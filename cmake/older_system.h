// SPDX-License-Identifier: MIT
// older_system: what the sources use and the headers of Debian 11 lack (glibc 2.31, Linux 5.4,
// libmicrohttpd 0.9.72).
//
// How: tools/build_tarball.sh includes this file before each source file, so the sources themselves
// need no conditions. The functions of newer systems that the program uses where they exist are
// declared weak by the sources; here are only constants, structures, and sigabbrev_np, whose table
// is the same on x86-64 and AArch64. Context: T and H.
#pragma once

#include <dlfcn.h>
#include <features.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

// Numbers of system calls since Linux 5.0 are equal on all machines.
#ifndef SYS_close_range
#    define SYS_close_range 436
#endif
#ifndef SYS_pidfd_getfd
#    define SYS_pidfd_getfd 438
#endif
#ifndef SYS_epoll_pwait2
#    define SYS_epoll_pwait2 441
#endif
#ifndef SYS_landlock_restrict_self
#    define SYS_landlock_restrict_self 446
#endif

// The error 413, which libmicrohttpd called differently.
#define MHD_HTTP_CONTENT_TOO_LARGE 413

// glibc 2.35, <link.h>.
#if !__GLIBC_PREREQ(2, 35)
struct r_debug_extended {
    struct r_debug base;
    struct r_debug_extended *r_next;
};
#endif

// glibc 2.35, <dlfcn.h>, on machines without DLFO_STRUCT_HAS_EH_DBASE.
#ifndef DLFO_STRUCT_HAS_EH_DBASE
struct dl_find_object {
    unsigned long long dlfo_flags;
    void *dlfo_map_start;
    void *dlfo_map_end;
    struct link_map *dlfo_link_map;
    void *dlfo_eh_frame;
    unsigned long long reserved[7];
};
#endif

// Linux 5.19, include/uapi/linux/magic.h.
#define FUSE_SUPER_MAGIC 0x65735546

// Linux 5.13, include/uapi/linux/ptrace.h.
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
struct __ptrace_rseq_configuration {
    uint64_t rseq_abi_pointer;
    uint32_t rseq_abi_size;
    uint32_t signature;
    uint32_t flags;
    uint32_t pad;
};

// glibc 2.32, <string.h>: signal(7).
static inline const char *sigabbrev_np(int number)
{
    static const char *const names[] = {
        NULL,   "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
        "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
        "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS",
    };
    return number > 0 && (size_t)number < sizeof(names) / sizeof(*names) ? names[number] : NULL;
}
