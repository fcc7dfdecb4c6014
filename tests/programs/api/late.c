// SPDX-License-Identifier: MIT
// late: cairn's library comes when the program runs already, as an injector would bring it: the
// pointers of the executable and of a library that it is linked with (api_part.c) are found and
// set. Says by its exit status: 7 if both report from then on.
#include <cairn.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int part_work(void);

static char memory[100];

int main(int count, char **arguments)
{
    const char *preloaded = getenv("LD_PRELOAD");
    if (count == 1 && preloaded != NULL) { // begins anew without it
        char *const again[] = {arguments[0], (char *)preloaded, NULL};
        unsetenv("LD_PRELOAD");
        execv("/proc/self/exe", again);
        return 2;
    }
    if (count != 2 || cairn_is_recording() || part_work() != 0) {
        return 3;
    }
    cairn_report_alloc(memory, 1); // nobody listens
    if (dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) == NULL || !cairn_is_recording()) {
        return 4;
    }
    cairn_report_alloc(memory, 55);
    return part_work() ? 7 : 5;
}
