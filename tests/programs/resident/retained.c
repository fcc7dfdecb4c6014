// SPDX-License-Identifier: MIT
// retained THREADS MIB: a service after its burst. Each of THREADS threads allocates MIB MiB in
// blocks of 256 bytes, frees all but each 64th, and sleeps; the main thread keeps two large blocks.
// Then it allocates nothing, and answers commands, a line each, with "done":
//
//   s  says mallinfo2(3): free bytes, bytes in use, bytes of large blocks
//   t  calls malloc_trim(0), and says how many bytes less are resident
//   a  allocates and frees one block
//   q  ends it
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MIB = 1 << 20,
    NODE_BYTES = 256,
    KEPT_EACH = 64,
    THREADS_MAX = 64,
};

static size_t g_nodes; // of each thread
static pthread_barrier_t g_is_over;

static char *make(size_t size)
{
    char *made = malloc(size);
    if (made == NULL) {
        abort();
    }
    memset(made, 1, size);
    return made;
}

static void *serve(void *nodes)
{
    char **mine = nodes;
    for (size_t i = 0; i < g_nodes; i++) {
        mine[i] = make(NODE_BYTES);
    }
    for (size_t i = 0; i < g_nodes; i++) {
        if (i % KEPT_EACH != 0) {
            free(mine[i]);
        }
    }
    (void)pthread_barrier_wait(&g_is_over);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

// Without stdio, which allocates.
static size_t resident_bytes(void)
{
    char text[128] = "";
    size_t pages[2] = {0};
    const int fd = open("/proc/self/statm", O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
        sscanf(text, "%zu %zu", &pages[0], &pages[1]) != 2) {
        abort();
    }
    (void)close(fd);
    return pages[1] * 4096;
}

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

static void obey(char command)
{
    char text[128] = "";
    const struct mallinfo2 info = mallinfo2();
    const size_t before_bytes = resident_bytes();
    switch (command) {
    case 's':
        (void)snprintf(text, sizeof(text), "%zu %zu %zu\n", info.fordblks, info.uordblks,
                       info.hblkhd);
        break;
    case 't':
        (void)malloc_trim(0);
        (void)snprintf(text, sizeof(text), "%zu\n", before_bytes - resident_bytes());
        break;
    case 'a':
        free(make(100));
        break;
    case 'q':
        _exit(0);
    default:
        break;
    }
    say(text);
    say("done\n");
}

int main(int argc, char **argv)
{
    const size_t threads = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
    if (threads > THREADS_MAX) {
        return 1;
    }
    g_nodes = argc > 2 ? strtoul(argv[2], NULL, 10) * MIB / NODE_BYTES : 0;
    (void)pthread_barrier_init(&g_is_over, NULL, (unsigned)threads + 1);
    char *large[] = {make(2 * MIB), make(3 * MIB)};
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, make(g_nodes * sizeof(char *))) != 0) {
            return 1;
        }
    }
    (void)pthread_barrier_wait(&g_is_over);
    for (char command; read(STDIN_FILENO, &command, 1) == 1;) {
        if (command != '\n') {
            obey(command);
        }
    }
    return large[0][1] + large[1][1] - 2;
}
