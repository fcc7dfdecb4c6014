// SPDX-License-Identifier: MIT
// two_loaders PLUGIN OTHER: one thread opens and closes a plugin with RTLD_DEEPBIND, whose pointers
// cairn changes. Another thread opens and closes an unrelated library with thousands of
// relocations, so that the loader is mostly in the middle of them.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    ROUNDS = 400
};

static atomic_bool g_is_over;

static void open_and_close(const char *file, int mode)
{
    void *handle = dlopen(file, mode);
    if (handle == NULL || dlclose(handle) != 0) {
        abort();
    }
}

static void *load_other(void *file)
{
    for (int i = 0; i < ROUNDS; i++) {
        open_and_close(file, RTLD_NOW | RTLD_LOCAL);
    }
    atomic_store(&g_is_over, 1);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t other;
    if (count != 3 || pthread_create(&other, NULL, load_other, arguments[2]) != 0) {
        return 1;
    }
    while (!atomic_load(&g_is_over)) {
        open_and_close(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
    }
    return pthread_join(other, NULL);
}
