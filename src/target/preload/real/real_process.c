// SPDX-License-Identifier: MIT
#include "target/preload/real/real_process.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "target/preload/real/definitions.h"

static atomic_bool g_is_resolved;

static int no_such_function(void)
{
    errno = ENOSYS;
    return -1;
}

#define X(name, result, parameters, arguments, answer)                                         \
    static result first_##name parameters                                                      \
    {                                                                                          \
        real_process_resolve();                                                                \
        return g_real_process.name != first_##name ? g_real_process.name arguments : (answer); \
    }
PROCESS_FUNCTIONS(X)
#undef X

struct real_process g_real_process = {
#define X(name, result, parameters, arguments, answer) .name = first_##name,
    PROCESS_FUNCTIONS(X)
#undef X
};

void real_process_resolve(void)
{
    // Acquire: pairs with the release below, for threads that come while another one looks up.
    if (atomic_load_explicit(&g_is_resolved, memory_order_acquire)) {
        return;
    }
    struct real_process next = g_real_process;
#define X(name, result, parameters, arguments, answer) \
    (void)definition_next_into(#name, &next.name);
    PROCESS_FUNCTIONS(X)
#undef X
    g_real_process = next;
    atomic_store_explicit(&g_is_resolved, true, memory_order_release);
}
