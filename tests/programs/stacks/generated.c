// SPDX-License-Identifier: MIT
// generated NAME BLOCKS [WAY]: machine code that is generated at run time, like that of JIT
// compilers, and calls malloc for BLOCKS blocks of 7601 bytes; and /tmp/perf-PID.map, which names
// it NAME. WAY: "late" writes the map at the very end, "link" puts a symbolic link to it in its
// place, "old" sets its date to 1970, "serves" writes it at once and calls malloc every millisecond
// until the input ends, "unnamed" does so without a map.
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int g_keeps;

static __attribute__((noinline)) void allocate(void)
{
    if (g_keeps) {
        void *volatile kept = malloc(16);
        (void)kept;
        return;
    }
    void *block = malloc(7601);
    memset(block, 0, 7601);
    free(block);
}

// Generate a function with a frame pointer that calls `callee` and returns.
static void *generate(void (*callee)(void))
{
#if defined(__x86_64__)
    uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,    0,
                      0,    0,    0,    0,    0,    0xff, 0xd0, 0x5d, 0xc3};
    const size_t place = 6;
#elif defined(__aarch64__)
    const uint32_t words[] = {0xa9bf7bfd, 0x910003fd, 0x58000080, 0xd63f0000,
                              0xa8c17bfd, 0xd65f03c0, 0,          0};
    uint8_t code[sizeof(words)];
    memcpy(code, words, sizeof(words));
    const size_t place = 24;
#endif
    memcpy(code + place, &callee, sizeof(callee));
    uint8_t *memory =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, code, sizeof(code));
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof(code));
    return memory;
}

static void write_map(const void *code, const char *name, const char *way)
{
    char path[64];
    char real[80];
    (void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    (void)snprintf(real, sizeof(real), "%s.real", path);
    const int is_link = strcmp(way, "link") == 0;
    FILE *file = fopen(is_link ? real : path, "w");
    (void)fprintf(file, "%" PRIxPTR " %x %s\n", (uintptr_t)code, 4096, name);
    (void)fclose(file);
    if (is_link) {
        (void)!symlink(real, path);
    }
    if (strcmp(way, "old") == 0) {
        const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        (void)utimensat(AT_FDCWD, path, times, 0);
    }
}

int main(int count, char **arguments)
{
    const char *way = count > 3 ? arguments[3] : "";
    const int is_late = strcmp(way, "late") == 0;
    g_keeps = strcmp(way, "keep") == 0;
    void *code = generate(allocate);
    void (*run)(void);
    memcpy(&run, &code, sizeof(run));
    const int is_unnamed = strcmp(way, "unnamed") == 0;
    if (!is_late && !is_unnamed) {
        write_map(code, arguments[1], way);
    }
    for (long left = strtol(arguments[2], NULL, 10); left > 0; left--) {
        run();
    }
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while ((is_unnamed || strcmp(way, "serves") == 0) && poll(&input, 1, 1) == 0) {
        run();
    }
    if (is_late) {
        write_map(code, arguments[1], way);
    }
    printf("%d\n", getpid());
    return 0;
}
