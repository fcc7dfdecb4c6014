// SPDX-License-Identifier: MIT
// real_process: see real_process.h.
#include "preload/real_process.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "preload/definitions.h"

static bool g_is_resolved;

static int no_such_function(void)
{
    errno = ENOSYS;
    return -1;
}

#define X(name, result, parameters, arguments, answer)                                   \
 static result first_##name parameters                                                   \
 {                                                                                       \
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

static void look_up(const char *name, void *place)
{
    const struct definition found = definition_next(name);
    if (found.module != NULL) {
        memcpy(place, &found.address, sizeof(found.address)); // POSIX: it fits a pointer
    }
}

void real_process_resolve(void)
{
    if (g_is_resolved) {
        return;
    }
    struct real_process next = g_real_process;
#define X(name, result, parameters, arguments, answer) look_up(#name, &next.name);
    PROCESS_FUNCTIONS(X)
#undef X
    g_real_process = next;
    g_is_resolved = true;
}
