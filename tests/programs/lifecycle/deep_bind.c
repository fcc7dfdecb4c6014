// SPDX-License-Identifier: MIT
// TRUTH: allocations=40 frees=30 allocated_bytes=36000 temporary=10
// TRUTH: leaked_bytes=9000 leaked_allocations=10
//
// deep_bind PLUGIN: opens deep_plugin.c with RTLD_DEEPBIND, so that its malloc is looked up in libc
// first. Each side frees blocks of the other. Every block here has 900 bytes; no block of the
// dynamic loader has, so that the test can distinguish them.
#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    void *plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    if (plugin == NULL) {
        return 1;
    }
    void *(*make)(size_t) = (void *(*)(size_t))dlsym(plugin, "deep_plugin_make");
    void (*give_back)(void *) = (void (*)(void *))dlsym(plugin, "deep_plugin_free");
    for (int i = 0; i < 10; i++) {
        void *theirs = make(900);
        void *ours = malloc(900);
        free(theirs);
        give_back(ours);
        give_back(make(900));
        if (make(900) == NULL) {
            return 2;
        }
    }
    return 0;
}
