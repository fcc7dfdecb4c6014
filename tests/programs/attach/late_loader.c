// SPDX-License-Identifier: MIT
// late_loader: a program that loads and unloads libraries when it is told to.
//
// Each argument is the path of a library that has a function `library_round`: linked_allocator.c
// with -DLIBRARY. The program reads commands of two characters, one to a line, and answers each
// with "done": l0 loads the library of the first argument, r0 calls its library_round, u0 unloads
// it, f0 forks a child that loads it, calls library_round and ends, and so on. p does nothing. It
// ends with q or its input.
//
// TRUTH: nothing but the loader allocates here; a library says what its rounds do. To load it is a
// round, too.
#include <dlfcn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LIBRARIES_MAX = 10,
};

static void *g_libraries[LIBRARIES_MAX];

static void check(int is_right)
{
    if (!is_right) {
        _exit(3);
    }
}

static void load(const char *path, int index)
{
    g_libraries[index] = dlopen(path, RTLD_NOW);
    check(g_libraries[index] != NULL);
}

static void do_round(int index)
{
    union {
        void *address;
        void (*call)(void);
    } found = {.address = dlsym(g_libraries[index], "library_round")};
    check(found.address != NULL);
    found.call();
}

static void load_in_child(const char *path, int index)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        load(path, index);
        do_round(index);
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    char command[2] = "";
    while (read(STDIN_FILENO, command, 1) == 1 && command[0] != 'q') {
        if (command[0] == '\n') {
            continue;
        }
        int index = 0;
        if (command[0] != 'p') {
            check(read(STDIN_FILENO, command + 1, 1) == 1);
            index = command[1] - '0';
            check(index >= 0 && index < LIBRARIES_MAX && index + 1 < argc);
        }
        if (command[0] == 'l') {
            load(argv[index + 1], index);
        } else if (command[0] == 'r') {
            do_round(index);
        } else if (command[0] == 'u') {
            check(dlclose(g_libraries[index]) == 0);
        } else if (command[0] == 'f') {
            load_in_child(argv[index + 1], index);
        }
        check(write(STDOUT_FILENO, "done\n", 5) == 5);
    }
    return 0;
}
