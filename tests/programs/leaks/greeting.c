// SPDX-License-Identifier: MIT
// Does what most programs of C do and leaves nothing but what libc keeps: prints, reads, asks for
// the locale and the time zone, has something done at its end, loads a module. With the word "file"
// it leaks a FILE that was read; with "module" it loads the one that it is told, whose constructor
// keeps a block.
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
    tzset(); // and no localtime, which jumps to what has no name without debug symbols
    (void)setlocale(LC_ALL, "C.UTF-8");
    for (int i = 0; i < 40; i++) { // glibc has room for 32 before it asks for more
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
