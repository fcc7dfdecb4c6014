// SPDX-License-Identifier: MIT
// greeting: does what most C programs do and leaves only libc's own blocks: prints, reads, queries
// the locale and the time zone, registers an exit handler, loads a module. With the word "file" it
// leaks a FILE after reading; with "module" it loads the given module, whose constructor keeps a
// block.
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

static void say_nothing(void)
{
}

static FILE *volatile kept;

static void leak_a_file(const char *path)
{
    kept = fopen(path, "r");
    if (kept == NULL || fgetc(kept) == EOF) {
        exit(2);
    }
    kept = NULL;
}

int main(int argc, char **argv)
{
    tzset(); // without localtime, which jumps to code without a name if there are no debug symbols
    (void)setlocale(LC_ALL, "C.UTF-8");
    for (int i = 0; i < 40; i++) { // glibc has room for 32 handlers before it allocates
        (void)atexit(say_nothing);
    }
    (void)printf("hello in %s\n", tzname[0]);
    (void)getchar();
    if (argc > 2 && strcmp(argv[1], "file") == 0) {
        leak_a_file(argv[2]);
    }
    if (argc > 2 && strcmp(argv[1], "module") == 0 && dlopen(argv[2], RTLD_NOW) == NULL) {
        return 2;
    }
    return 0;
}
