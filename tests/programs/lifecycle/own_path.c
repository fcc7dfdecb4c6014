// SPDX-License-Identifier: MIT
// TRUTH: allocations=0
//
// own_path: opens libdeep_plugin.so by its bare name, first with RTLD_DEEPBIND, then plainly. Only
// this program's own RUNPATH finds it; the second call finds it loaded. Prints which calls worked.
#include <dlfcn.h>
#include <unistd.h>

static void say(const char *text, size_t length)
{
    if (write(STDOUT_FILENO, text, length) != (ssize_t)length) {
        _exit(2);
    }
}

int main(void)
{
    void *deep = dlopen("libdeep_plugin.so", RTLD_NOW | RTLD_DEEPBIND);
    void *plain = dlopen("libdeep_plugin.so", RTLD_LAZY);
    void *missing = dlopen("libdeep_plugin_that_is_not_there.so", RTLD_NOW);
    if (plain != NULL) {
        say("plain\n", 6);
    }
    if (deep != NULL) {
        say("deep\n", 5);
    }
    return missing == NULL && dlerror() != NULL ? 0 : 1;
}
