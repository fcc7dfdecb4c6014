// SPDX-License-Identifier: MIT
// scribbler SEED: allocates on up to four threads, and perhaps in a child, while it overwrites the
// memory that it shares with its recorder, in a way that SEED chooses. It may crash. After a third
// of a second it exits or kills itself in each case.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    AREAS_MAX = 256,
    BLOCKS = 128,
    ROUNDS = 300,
    PAIRS = 4000,
    DEADLINE_S = 5,
    FRONT_BYTES = 256 << 10, // of the session: header, processes, notes
};

struct area {
    uint8_t *start;
    size_t bytes;
    int is_open; // writable
};

static struct area g_areas[AREAS_MAX];
static size_t g_area_count;
static uint64_t g_random;

static uint64_t next_random(void)
{
    g_random ^= g_random << 13;
    g_random ^= g_random >> 7;
    g_random ^= g_random << 17;
    return g_random * 0x2545f4914f6cdd1dULL;
}

static void find_areas(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    g_area_count = 0;
    while (maps != NULL && g_area_count < AREAS_MAX && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long start;
        unsigned long end;
        char access[8];
        if (strstr(line, "memfd:cairn") != NULL &&
            sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3) {
            g_areas[g_area_count++] = (struct area){
                .start = (uint8_t *)start, .bytes = end - start, .is_open = access[1] == 'w'};
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

static __attribute__((noinline)) void *one_site(size_t bytes)
{
    return malloc(bytes);
}

static __attribute__((noinline)) void *other_site(size_t bytes)
{
    return malloc(bytes);
}

static void *churn(void *seed)
{
    void *blocks[BLOCKS] = {0};
    uint64_t random = (uint64_t)seed | 1;
    for (int i = 0; i < PAIRS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        void **block = &blocks[(random >> 40) % BLOCKS];
        free(*block);
        *block = ((random >> 50) & 1 ? one_site : other_site)((random >> 30) & 1023);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static uint64_t interesting(void)
{
    static const uint64_t words[] = {0,          1,          2,          3,          7,
                                     8,          0x7f,       0xff,       0xfff,      0x1000,
                                     0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 40,
                                     INT64_MAX,  1ull << 63, UINT64_MAX, 512 << 10,  16 << 10};
    const uint64_t r = next_random();
    return r % 3 != 0 ? words[(r >> 8) % (sizeof(words) / sizeof(words[0]))]
                      : next_random() >> ((r >> 20) & 63);
}

// Each function writes to a random place of an area.
static void bytes(uint8_t *at, size_t room)
{
    for (int i = 0; i < 64; i++) {
        at[next_random() % room] = (uint8_t)next_random();
    }
}

static void bits(uint8_t *at, size_t room)
{
    for (int i = 0; i < 32; i++) {
        at[next_random() % room] ^= (uint8_t)(1u << (next_random() & 7));
    }
}

static void words(uint8_t *at, size_t room)
{
    for (int i = 0; i < 32; i++) {
        ((uint64_t *)(void *)at)[next_random() % (room / 8)] = interesting();
    }
}

static void one_value(uint8_t *at, size_t room)
{
    const size_t from = next_random() % room;
    const size_t length = next_random() % 4096;
    memset(at + from, (int)next_random(), length < room - from ? length : room - from);
}

// Change positions, counts and times by a little.
static void small_steps(uint8_t *at, size_t room)
{
    const size_t count = room / 8 < 512 ? room / 8 : 512;
    for (int i = 0; i < 8; i++) {
        ((uint64_t *)(void *)at)[next_random() % count] += next_random() % 5 - 2;
    }
}

static void noise(uint8_t *at, size_t room)
{
    const size_t from = next_random() % room;
    for (size_t i = from; i < room && i < from + 8192; i++) {
        at[i] = (uint8_t)next_random();
    }
}

static void front_words(uint8_t *at, size_t room)
{
    (void)room;
    for (int i = 0; i < 64; i++) {
        ((uint64_t *)(void *)at)[next_random() % 8192] = interesting();
    }
}

// Write process slots that name living processes: itself, its parent, pid 1.
static void living_pids(uint8_t *at, size_t room)
{
    (void)room;
    const uint32_t pids[] = {1, (uint32_t)getpid(), (uint32_t)getppid(), 2};
    for (int i = 0; i < 4; i++) {
        uint32_t *slot = (uint32_t *)(void *)(at + 4096 + next_random() % 64 * 64);
        slot[1] = pids[next_random() % 4];
        slot[0] = 2; // in use
    }
}

static const struct {
    void (*write)(uint8_t *at, size_t room);
    int is_in_front; // of the session, or anywhere
} ways[] = {{bytes, 0}, {bits, 0},  {words, 0},       {one_value, 0},   {small_steps, 0},
            {noise, 0}, {words, 1}, {front_words, 1}, {living_pids, 1}, {small_steps, 1}};

static void scribble(size_t way)
{
    const struct area *area = &g_areas[ways[way].is_in_front ? 0 : next_random() % g_area_count];
    size_t room = area->bytes < FRONT_BYTES ? area->bytes : FRONT_BYTES;
    uint8_t *at = area->start;
    if (!area->is_open) { // unused lanes are skipped
        room = 65536;
        at += next_random() % (area->bytes / room) * room;
        if (mprotect(at, room, PROT_READ | PROT_WRITE) != 0) {
            return;
        }
    } else if (!ways[way].is_in_front && area->bytes > room) {
        at += next_random() % (area->bytes / room) * room;
    }
    ways[way].write(at, room);
}

static void leave(int number)
{
    _exit(64 + number);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int count, char **arguments)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGALRM, SIGFPE};
    if (count != 2) {
        return 2;
    }
    g_random = strtoull(arguments[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1;
    for (int i = 0; i < 8; i++) {
        (void)next_random();
    }
    free(malloc(3)); // creates the session, if it is to exist
    find_areas();
    if (g_area_count == 0) {
        return 3;
    }
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        signal(fatal[i], leave);
    }
    alarm(DEADLINE_S);
    const size_t way = next_random() % (sizeof(ways) / sizeof(ways[0]));
    const int thread_count = (int)(next_random() % 4);
    for (int i = 0; i < thread_count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, churn, (void *)next_random()) == 0) {
            pthread_detach(thread);
        }
    }
    const pid_t child = next_random() % 3 == 0 ? fork() : -1;
    if (child == 0) {
        g_random += 99;
        alarm(DEADLINE_S);
    }
    find_areas();
    const double end = now_s() + 0.3;
    for (int round = 0; round < ROUNDS && now_s() < end && g_area_count > 0; round++) {
        scribble(way);
        churn((void *)next_random());
    }
    if (child != 0 && next_random() % 5 == 0) {
        kill(getpid(), SIGKILL);
    }
    _exit(child == 0 ? 5 : 4);
}
