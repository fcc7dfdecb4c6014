// SPDX-License-Identifier: MIT
// TRUTH: blocks=40 block_bytes=5000
//
// quiet_ends: a program that allocates nothing itself and starts a child for each way to end. The
// children take their blocks one after the other, keep them, are idle, and end. Steps:
//
//   stdin       program                                  children
//   a line      starts them                              take their blocks
//               is idle as long, a second at least       are idle
//               says "quiet"
//   a line      lets them end one after the other        end
//               ("slowly": after a moment each, while a thread
//               of the program keeps the recorder awake)
//               says of each "WAY PID GROWN_MS ENDING_MS ENDED_MS", milliseconds of one clock:
//               when it had taken its blocks, and just before and after its end
//               is idle for a moment, and ends
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCKS = 40,
    BLOCK_BYTES = 5000,
    STEP_MS = 10,
    IDLE_MS = 1000,
    AFTER_MS = 200,
};

static void *g_blocks[BLOCKS];

static long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void rest(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

// Return whether there was a line.
static int hear(void)
{
    char byte = 0;
    while (byte != '\n' && read(STDIN_FILENO, &byte, 1) == 1) {
    }
    return byte == '\n';
}

// The test searches the names of the functions that take the blocks.
#define WAY(name, END)                     \
    static void keep_##name(int i)         \
    {                                      \
        g_blocks[i] = malloc(BLOCK_BYTES); \
    }                                      \
    static void end_##name(void)           \
    {                                      \
        END;                               \
    }
WAY(exit, exit(0))
WAY(raw_exit, _exit(0))
WAY(quick_exit, quick_exit(0))
WAY(kill, raise(SIGKILL))
WAY(call, syscall(SYS_exit_group, 0))
WAY(exec, execl("/proc/self/exe", "quiet_ends", "executed", NULL))

static const struct {
    const char *name;
    void (*keep)(int i);
    void (*end)(void);
} g_ways[] = {
    {"exit", keep_exit, end_exit},
    {"raw_exit", keep_raw_exit, end_raw_exit},
    {"quick_exit", keep_quick_exit, end_quick_exit},
    {"kill", keep_kill, end_kill},
    {"call", keep_call, end_call},
    {"exec", keep_exec, end_exec},
};

enum {
    WAYS = sizeof(g_ways) / sizeof(g_ways[0]),
};

// What a child shares with the program.
struct times {
    long grown_ms;
    long ending_ms;
};

static int g_grown[2]; // a byte of each child that has its blocks
static int g_end[WAYS][2];

static void run_child(int way, volatile struct times *times)
{
    char byte = 0;
    for (int i = 0; i < BLOCKS; i++) {
        g_ways[way].keep(i);
        rest(STEP_MS);
    }
    times->grown_ms = now_ms();
    (void)!write(g_grown[1], &byte, 1);
    (void)!read(g_end[way][0], &byte, 1);
    times->ending_ms = now_ms();
    g_ways[way].end();
    abort();
}

static pid_t start(int way, volatile struct times *times)
{
    if (pipe(g_end[way]) != 0) {
        abort();
    }
    const pid_t child = fork();
    if (child == 0) {
        run_child(way, times);
    }
    return child;
}

static void *keep_awake(void *unused)
{
    for (;;) {
        void *volatile block = malloc(100);
        free(block);
        rest(STEP_MS);
    }
    return unused;
}

static void end(int way, pid_t child, const volatile struct times *times)
{
    char line[128];
    char byte = 0;
    int status;
    (void)!write(g_end[way][1], &byte, 1);
    while (waitpid(child, &status, 0) != child) {
        if (errno != EINTR) {
            abort();
        }
    }
    (void)snprintf(line, sizeof(line), "%s %d %ld %ld %ld\n", g_ways[way].name, (int)child,
                   times->grown_ms, times->ending_ms, now_ms());
    say(line);
}

int main(int count, char **arguments)
{
    pid_t children[WAYS];
    pthread_t thread;
    char byte;
    if (count > 1 && strcmp(arguments[1], "executed") == 0) {
        return 0;
    }
    const int is_slow = count > 1 && strcmp(arguments[1], "slowly") == 0;
    volatile struct times *times = mmap(NULL, sizeof(*times) * WAYS, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (times == MAP_FAILED || pipe(g_grown) != 0 || !hear()) {
        return 1;
    }
    const long begun_ms = now_ms();
    for (int way = 0; way < WAYS; way++) {
        children[way] = start(way, times + way);
    }
    for (int way = 0; way < WAYS; way++) {
        (void)!read(g_grown[0], &byte, 1);
    }
    if (is_slow && pthread_create(&thread, NULL, keep_awake, NULL) != 0) {
        return 1;
    }
    const long growth_ms = now_ms() - begun_ms;
    rest(growth_ms > IDLE_MS ? growth_ms : IDLE_MS);
    say("quiet\n");
    if (!hear()) {
        return 1;
    }
    for (int way = 0; way < WAYS; way++) {
        rest(is_slow ? AFTER_MS : 0);
        end(way, children[way], times + way);
    }
    rest(AFTER_MS);
    return 0;
}
