// SPDX-License-Identifier: MIT
// plugins: loads and unloads its arguments in turn, several times, and allocates in each: 100 bytes
// in the first, 101 in the second and so on. Prints where each was loaded. "deep": with
// RTLD_DEEPBIND. "apart": in namespaces of their own, whose blocks stay with the malloc there.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const int mode = RTLD_NOW | RTLD_LOCAL | (strcmp(argv[1], "deep") == 0 ? RTLD_DEEPBIND : 0);
    const bool is_apart = strcmp(argv[1], "apart") == 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 2; i < argc; i++) {
            void *plugin = is_apart ? dlmopen(LM_ID_NEWLM, argv[i], mode) : dlopen(argv[i], mode);
            void *symbol = plugin != NULL ? dlsym(plugin, "plugin_entry") : NULL;
            if (symbol == NULL) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
            void *(*entry)(size_t);
            memcpy(&entry, &symbol, sizeof(entry));
            void *block = entry((size_t)(100 + i - 2));
            if (!is_apart) {
                free(block);
            }
            printf("%lx\n", (unsigned long)(uintptr_t)symbol);
            dlclose(plugin);
        }
    }
    return 0;
}
