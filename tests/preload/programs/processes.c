// SPDX-License-Identifier: MIT
// processes: one way to make or to end a process for each argument; each process leaves blocks of
// sizes that tell who allocated what. The table in test_processes.py is the truth.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *volatile kept[64];
static size_t kept_count;

static void keep(size_t size)
{
    kept[kept_count++] = malloc(size);
}

static int status_of(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child) {
        _exit(97);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The child allocates 222 and frees the block of 111 that its parent made; the parent goes on.
static int both_sides(pid_t (*make_child)(void))
{
    keep(111);
    const pid_t child = make_child();
    if (child == 0) {
        keep(222);
        free(kept[0]);
        _exit(7);
    }
    keep(333);
    return status_of(child) == 7 ? 0 : 1;
}

static pid_t raw_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int vfork_exec(char *self)
{
    keep(111);
    char *const arguments[] = {self, (char[]){"exit"}, NULL};
    const pid_t child = vfork();
    if (child == 0) {
        keep(222); // in its parent's memory, on its parent's lane
        execv(self, arguments);
        _exit(96);
    }
    keep(333);
    return status_of(child);
}

static int spawn(char *self)
{
    keep(111);
    char *const arguments[] = {self, (char[]){"exit"}, NULL};
    pid_t child;
    if (posix_spawn(&child, self, NULL, NULL, arguments, environ) != 0) {
        return 95;
    }
    keep(333);
    return status_of(child);
}

static int exec_self(char *self)
{
    keep(111);
    char *const arguments[] = {self, (char[]){"exit"}, NULL};
    return execv(self, arguments);
}

// Forks twice, closes everything, and writes its pid into the file that it is given.
static int become_daemon(const char *pid_file)
{
    keep(111);
    if (fork() != 0) {
        return 0;
    }
    if (setsid() < 0 || fork() != 0) {
        _exit(0);
    }
    for (int fd = 0; fd < 1024; fd++) {
        close(fd);
    }
    for (size_t i = 0; i < 20000; i++) {
        free(malloc(i % 100));
    }
    keep(444);
    const int fd = open(pid_file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    dprintf(fd, "fd %d\n", fd); // 0 if nothing of ours is open
    close(fd);
    _exit(0);
}

static int end_by(const char *how)
{
    keep(111);
    if (strcmp(how, "_exit") == 0) {
        _exit(3);
    }
    if (strcmp(how, "quick_exit") == 0) {
        quick_exit(4);
    }
    if (strcmp(how, "abort") == 0) {
        abort();
    }
    if (strcmp(how, "vfork_exit") == 0 && vfork() == 0) {
        _exit(0); // in the memory of its parent
    }
    if (strcmp(how, "kill") == 0 || strcmp(how, "vfork_exit") == 0) {
        kill(getpid(), SIGKILL);
    }
    if (strcmp(how, "segv") == 0) {
        *(volatile int *)(uintptr_t)8 = 1;
    }
    exit(5);
}

static pid_t plain_fork(void)
{
    return fork();
}

static int grandchildren(void)
{
    keep(111);
    const pid_t child = fork(); // does nothing but fork
    if (child == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            keep(222);
            _exit(7);
        }
        _exit(status_of(grandchild));
    }
    return status_of(child) == 7 ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "exit") == 0) {
        keep(555);
        return 0;
    }
    if (strcmp(mode, "fork") == 0) {
        return both_sides(plain_fork);
    }
    if (strcmp(mode, "_Fork") == 0) {
        return both_sides(_Fork);
    }
    if (strcmp(mode, "clone") == 0) {
        return both_sides(raw_clone);
    }
    if (strcmp(mode, "grandchildren") == 0) {
        return grandchildren();
    }
    if (strcmp(mode, "vfork") == 0) {
        return vfork_exec(argv[0]);
    }
    if (strcmp(mode, "spawn") == 0) {
        return spawn(argv[0]);
    }
    if (strcmp(mode, "exec") == 0) {
        return exec_self(argv[0]);
    }
    if (strcmp(mode, "daemon") == 0) {
        return become_daemon(argv[2]);
    }
    if (strcmp(mode, "environment") == 0) {
        for (char **variable = environ; *variable != NULL; variable++) {
            dprintf(1, "%s\n", *variable);
        }
        return 0;
    }
    if (strcmp(mode, "nothing") == 0) {
        return 0;
    }
    return end_by(mode);
}
