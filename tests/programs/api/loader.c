// SPDX-License-Identifier: MIT
// loader LIBRARY: loads a library that reports (api_part.c) into the running program. Its exit
// status says whether that is recorded.
#include <dlfcn.h>

int main(int count, char **arguments)
{
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : 0;
    if (library == 0) {
        return 2;
    }
    int (*work)(void) = (int (*)(void))dlsym(library, "part_work");
    return work != 0 && work() ? 7 : 0;
}
