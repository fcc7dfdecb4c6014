// SPDX-License-Identifier: MIT
// plugins: loads and unloads its arguments in turn, several times, and allocates in each: 100 bytes
// in the first, 101 in the second and so on. Prints where each was loaded.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const int deep = strcmp(argv[1], "deep") == 0 ? RTLD_DEEPBIND : 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 2; i < argc; i++) {
            void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL | deep);
            void *symbol = plugin != NULL ? dlsym(plugin, "plugin_entry") : NULL;
            if (symbol == NULL) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
            void *(*entry)(size_t);
            memcpy(&entry, &symbol, sizeof(entry));
            free(entry((size_t)(100 + i - 2)));
            printf("%lx\n", (unsigned long)(uintptr_t)symbol);
            dlclose(plugin);
        }
    }
    return 0;
}
