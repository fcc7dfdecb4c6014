// SPDX-License-Identifier: MIT
// executing FUNCTION PROGRAM [ARGUMENT...]: executes the program by the named function: after fork,
// after vfork, or spawned. Exits with the status of the program, or 127.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int execute(const char *how, const char *path, char **argv)
{
    char *bare[] = {"NOTHING=1", NULL};
    if (strcmp(how, "execve") == 0) {
        return execve(path, argv, environ);
    }
    if (strcmp(how, "cleared") == 0) {
        return execve(path, argv, bare);
    }
    if (strcmp(how, "null") == 0) {
        return execve(path, argv, NULL);
    }
    if (strcmp(how, "execv") == 0) {
        return execv(path, argv);
    }
    if (strcmp(how, "execvp") == 0) {
        return execvp(path, argv);
    }
    if (strcmp(how, "execvpe") == 0) {
        return execvpe(path, argv, environ);
    }
    if (strcmp(how, "execl") == 0) {
        return execl(path, argv[0], argv[1], (char *)NULL);
    }
    if (strcmp(how, "execlp") == 0) {
        return execlp(path, argv[0], argv[1], (char *)NULL);
    }
    if (strcmp(how, "execle") == 0) {
        return execle(path, argv[0], argv[1], (char *)NULL, environ);
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (strcmp(how, "fexecve") == 0) {
        return fexecve(fd, argv, environ);
    }
    return strcmp(how, "execveat") == 0 ? execveat(fd, "", argv, environ, AT_EMPTY_PATH) : -1;
}

static int status_of(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) <= 0 || !WIFEXITED(status)) {
        return 126;
    }
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 1;
    }
    const char *how = argv[1];
    const char *path = argv[2];
    pid_t child = 0;
    if (strcmp(how, "spawn") == 0) {
        return posix_spawn(&child, path, NULL, NULL, argv + 2, environ) == 0 ? status_of(child)
                                                                             : 127;
    }
    if (strcmp(how, "spawnp") == 0) {
        return posix_spawnp(NULL, path, NULL, NULL, argv + 2, environ) == 0 ? status_of(-1) : 127;
    }
    if (strcmp(how, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execve(path, argv + 2, environ);
            _exit(127);
        }
        free(malloc(1)); // in the memory of the child
        return status_of(child);
    }
    child = fork();
    if (child == 0) {
        execute(how, path, argv + 2);
        _exit(127);
    }
    return status_of(child);
}
