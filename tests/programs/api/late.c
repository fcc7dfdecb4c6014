// SPDX-License-Identifier: MIT
// late: cairn's library is loaded by a running program, as an injector would do. The pointers of
// the executable and of a linked library (api_part.c) are found and set. Exit status 7 if both
// report from then on.
#include <cairn.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int part_work(void);

static char memory[100];

int main(int count, char **arguments)
{
    const char *preloaded = getenv("LD_PRELOAD");
    if (count == 1 && preloaded != NULL) { // executes itself without the library
        char *const again[] = {arguments[0], (char *)preloaded, NULL};
        unsetenv("LD_PRELOAD");
        execv("/proc/self/exe", again);
        return 2;
    }
    if (count != 2 || cairn_is_recording() || part_work() != 0) {
        return 3;
    }
    cairn_report_alloc(memory, 1); // not recorded yet
    if (dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) == NULL || !cairn_is_recording()) {
        return 4;
    }
    cairn_report_alloc(memory, 55);
    return part_work() ? 7 : 5;
}
