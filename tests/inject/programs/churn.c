// SPDX-License-Identifier: MIT
// churn: threads that come and go (argument threads), and children that do, by fork, vfork or
// posix_spawn (those arguments; several are possible). Everybody allocates, writes, checks, frees.
#include "until_eof.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static bool use_heap(unsigned seed)
{
    enum {
        BLOCKS = 64
    };
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    bool is_good = true;
    for (unsigned i = 0; i < BLOCKS; i++) {
        sizes[i] = 1 + (seed * 31 + i * 97) % 3000;
        blocks[i] = malloc(sizes[i]);
        memset(blocks[i], (int)(seed + i), sizes[i]);
    }
    for (unsigned i = 0; i < BLOCKS; i += 2) {
        blocks[i] = realloc(blocks[i], sizes[i] * 2);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        for (size_t j = 0; j < sizes[i]; j++) {
            is_good = is_good && blocks[i][j] == (unsigned char)(seed + i);
        }
        free(blocks[i]);
    }
    return is_good;
}

static void *run_once(void *argument)
{
    if (!use_heap((unsigned)(uintptr_t)argument)) {
        fail("a block of a thread has changed");
    }
    g_checks++;
    return NULL;
}

static void *run_threads(void *argument)
{
    (void)argument;
    for (unsigned seed = 0; !g_is_over; seed++) {
        pthread_t threads[4];
        for (unsigned i = 0; i < 4; i++) {
            threads[i] = start(run_once, (void *)(uintptr_t)(seed + i));
        }
        for (unsigned i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    return NULL;
}

static void wait_for(pid_t child, const char *name)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0) {
        fail("%s: child %d, status %x, %s", name, child, status, strerror(errno));
    }
    g_checks++;
}

static void *run_forks(void *argument)
{
    (void)argument;
    for (unsigned seed = 0; !g_is_over; seed++) {
        pid_t child = fork();
        if (child == 0) {
            _exit(use_heap(seed) ? 0 : 5);
        }
        wait_for(child, "fork");
    }
    return NULL;
}

static void *run_vforks(void *argument)
{
    (void)argument;
    while (!g_is_over) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(6);
        }
        wait_for(child, "vfork");
    }
    return NULL;
}

static void *run_spawns(void *argument)
{
    (void)argument;
    char *arguments[] = {(char *)(uintptr_t) "true", NULL};
    while (!g_is_over) {
        pid_t child = -1;
        errno = posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ);
        wait_for(child, "posix_spawn");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void *(*run)(void *);
    } kinds[] = {{"threads", run_threads},
                 {"fork", run_forks},
                 {"vfork", run_vforks},
                 {"spawn", run_spawns}};
    pthread_t threads[16];
    unsigned count = 0;
    for (int i = 1; i < argc; i++) {
        for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            if (strcmp(argv[i], kinds[k].name) == 0) {
                threads[count++] = start(kinds[k].run, NULL);
            }
        }
    }
    begin();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return verdict();
}
