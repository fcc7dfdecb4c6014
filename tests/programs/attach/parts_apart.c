// SPDX-License-Identifier: MIT
// parts_apart [LIBRARY] [wait]: what only some ways into a program give. It prints "api 1" if it
// finds cairn_api_v1 by dlsym, else "api 0", then its process id. With "wait" it reads a line
// first.
//
// TRUTH. The code that it generates, which /tmp/perf-PID.map calls hot, calls malloc 5 times by
// jit_work, each block of 7601 bytes, and frees it. own_work takes 10 blocks of 300 bytes from an
// allocator with names of its own, je_malloc of LIBRARY or, with INSIDE, of the program, and keeps
// them.
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    JIT_CALLS = 5,
    JIT_BYTES = 7601,
    OWN_BLOCKS = 10,
    OWN_BYTES = 300,
};

#ifdef INSIDE
void *je_malloc(size_t size);
#endif

static __attribute__((noinline)) void jit_work(void)
{
    void *volatile block = malloc(JIT_BYTES);
    free(block);
}

// A function with a frame pointer that calls `callee` and returns.
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

static void run_generated(void)
{
    char path[64];
    void (*run)(void);
    void *code = generate(jit_work);
    memcpy(&run, &code, sizeof(run));
    (void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    (void)fprintf(map, "%" PRIxPTR " %x hot\n", (uintptr_t)code, 4096);
    (void)fclose(map);
    for (int i = 0; i < JIT_CALLS; i++) {
        run();
    }
}

static void *find(const char *library, const char *name)
{
    void *handle = library != NULL ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;
    return handle != NULL || library == NULL ? dlsym(handle, name) : NULL;
}

static __attribute__((noinline)) void own_work(void *(*take)(size_t))
{
    for (int i = 0; i < OWN_BLOCKS; i++) {
        memset(take(OWN_BYTES), 1, OWN_BYTES);
    }
}

int main(int count, char **arguments)
{
    char line[8];
    void *(*take)(size_t) = NULL;
    if (count > 2 && fgets(line, sizeof(line), stdin) == NULL) {
        return 1;
    }
#ifdef INSIDE
    (void)arguments;
    take = je_malloc;
#else
    *(void **)&take = find(arguments[1], "je_malloc");
    if (take == NULL) {
        return 2;
    }
#endif
    run_generated();
    own_work(take);
    printf("api %d\npid %d\n", find(NULL, "cairn_api_v1") != NULL, getpid());
    return 0;
}
