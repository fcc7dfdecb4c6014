// SPDX-License-Identifier: MIT
// plugins FIRST OTHER: opens a plugin, lets it leak a block (7401), closes it, opens another one
// that the system maps at the same address, and lets that leak one too (7402). Then the first one
// again (7403). Exit status 9 if the addresses differ: the test would prove nothing.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static uintptr_t use(const char *path, size_t size)
{
    void *plugin = dlopen(path, RTLD_NOW);
    if (plugin == NULL) {
        return 0;
    }
    void *(*entry)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_entry");
    entry(size);
    dlclose(plugin);
    return (uintptr_t)entry;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        return 2;
    }
    const uintptr_t first = use(arguments[1], 7401);
    const uintptr_t other = use(arguments[2], 7402);
    const uintptr_t again = use(arguments[1], 7403);
    return first != 0 && first == other && first == again ? 0 : 9;
}
