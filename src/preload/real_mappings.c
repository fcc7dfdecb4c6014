// SPDX-License-Identifier: MIT
// real_mappings: see real_mappings.h.
#include "preload/real_mappings.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"

static bool g_is_resolved;
static bool g_is_resolving;

// What libc makes of the kernel's answer.
static long told_by_errno(long result)
{
    if (sys_failed(result)) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static void *first_mmap(void *address, size_t size, int prot, int flags, int fd, off_t offset)
{
    return (void *)told_by_errno(sys_mmap(address, size, prot, flags, fd, offset));
}

static int first_munmap(void *address, size_t size)
{
    return (int)told_by_errno(sys_munmap(address, size));
}

static void *first_mremap(void *old, size_t old_size, size_t size, int flags, void *address)
{
    return (void *)told_by_errno(
        sys_call6(SYS_mremap, (long)old, (long)old_size, (long)size, flags, (long)address, 0));
}

static int first_brk(void *end)
{
    real_mappings_resolve();
    return g_real_mappings.brk != first_brk ? g_real_mappings.brk(end)
                                            : (int)told_by_errno(-ENOMEM);
}

static void *first_sbrk(intptr_t increment)
{
    real_mappings_resolve();
    return g_real_mappings.sbrk != first_sbrk ? g_real_mappings.sbrk(increment)
                                              : (void *)told_by_errno(-ENOMEM);
}

struct real_mappings g_real_mappings = {
    .mmap = first_mmap,
    .mmap64 = first_mmap,
    .munmap = first_munmap,
    .mremap = first_mremap,
    .brk = first_brk,
    .sbrk = first_sbrk,
};

// As in real_functions.c: every libc that we know has all of them.
static void look_up(const char *name, void *place)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found != NULL) {
        memcpy(place, &found, sizeof(found)); // POSIX: a function's address fits a void *
    } else {
        (void)dlerror(); // takes our failure back; there is nobody to tell
    }
}

void real_mappings_resolve(void)
{
    if (g_is_resolved || g_is_resolving) {
        return;
    }
    const int saved_errno = errno;
    g_is_resolving = true;
    struct real_mappings next = g_real_mappings;
#define X(name, result, parameters, arguments) look_up(#name, &next.name);
    MAPPING_FUNCTIONS(X)
#undef X
    g_real_mappings = next;
    g_is_resolved = true;
    g_is_resolving = false;
    errno = saved_errno;
}
