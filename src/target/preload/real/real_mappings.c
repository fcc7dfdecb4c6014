// SPDX-License-Identifier: MIT
#include "target/preload/real/real_mappings.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "target/preload/real/definitions.h"

static atomic_bool g_is_resolved;

// Convert the kernel's result to libc's.
static long with_errno(long result)
{
    if (sys_failed(result)) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static void *kernel_mremap(void *old, size_t old_size, size_t size, int flags, void *address)
{
    return (void *)with_errno(
        SYS_CALL(SYS_mremap, (long)old, (long)old_size, (long)size, flags, (long)address));
}

#define X(name, result, parameters, arguments, answer)                               \
    static result first_##name parameters                                            \
    {                                                                                \
        real_mappings_resolve();                                                     \
        return g_real_mappings.name != first_##name ? g_real_mappings.name arguments \
                                                    : (result)(answer);              \
    }
MAPPING_FUNCTIONS(X)
#undef X

struct real_mappings g_real_mappings = {
#define X(name, result, parameters, arguments, answer) .name = first_##name,
    MAPPING_FUNCTIONS(X)
#undef X
};

void real_mappings_resolve(void)
{
    // Acquire: pairs with the release below, for threads that come while another one looks up.
    if (atomic_load_explicit(&g_is_resolved, memory_order_acquire)) {
        return;
    }
    struct real_mappings next = g_real_mappings;
#define X(name, result, parameters, arguments, answer) \
    (void)definition_next_into(#name, &next.name);
    MAPPING_FUNCTIONS(X)
#undef X
    g_real_mappings = next;
    atomic_store_explicit(&g_is_resolved, true, memory_order_release);
}
