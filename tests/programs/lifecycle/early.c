// SPDX-License-Identifier: MIT
// TRUTH: allocations=2 frees=1 allocated_bytes=110 temporary=1 peak_bytes=100
// TRUTH: live_bytes=100 live_blocks=1
//
// early: a C program whose library (early_part.c) has called libc before cairn's constructor ran.
// It takes gettext's lock for writing and for reading, and prints dlerror(): cairn looks up
// functions too, and its failures must not show. The truth does not count libc's own blocks for the
// texts.
#include <dlfcn.h>
#include <libintl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int early_part(void);

static void tell(const char *when)
{
    const char *error = dlerror();
    char line[300];
    const int length = snprintf(line, sizeof(line), "%s: %s\n", when, error != NULL ? error : "-");
    (void)!fwrite(line, 1, (size_t)length, stderr); // unbuffered
}

static void talk(void)
{
    tell("at first");
    dlsym(RTLD_DEFAULT, "no_such_function");
    free(malloc(1));
    tell("looked up");
    if (dlopen("./no_such_library.so", RTLD_NOW | RTLD_DEEPBIND) != NULL) {
        abort();
    }
    tell("opened");
    void *itself = dlopen(NULL, RTLD_NOW);
    dlopen("./no_such_library.so", RTLD_NOW);
    dlclose(itself);
    tell("closed");
    for (int i = 0; i < 3; i++) {
        bindtextdomain("early", "/nowhere");
        bind_textdomain_codeset("early", "UTF-8");
        textdomain("early");
        fputs(gettext("done\n"), stderr);
    }
}

// Open and close a plugin in both ways that cairn distinguishes.
static int open_twice(const char *plugin)
{
    const int modes[] = {RTLD_NOW, RTLD_NOW | RTLD_DEEPBIND};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        void *handle = dlopen(plugin, modes[i]);
        if (handle == NULL || dlclose(handle) != 0) {
            return 1;
        }
    }
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "lazily") == 0) {
        return dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND) == NULL &&
                       dlopen(arguments[2], RTLD_LAZY | RTLD_DEEPBIND) != NULL
                   ? 0
                   : 1;
    }
    if (count == 3 && strcmp(arguments[1], "open") == 0) {
        return open_twice(arguments[2]);
    }
    if (count == 2 && strcmp(arguments[1], "talk") == 0) {
        talk();
        return 0;
    }
    free(malloc(10));
    return malloc(100) != NULL && early_part() ? 0 : 1;
}
