// SPDX-License-Identifier: MIT
// Keeps free memory, and waits for work: a process for `cairn trim`.
//
//   trimmed read       waits in read(2), with values in its vector registers and in errno
//   trimmed handler    the same, in the handler of a signal
//   trimmed busy       waits for nothing
//   trimmed threads    and 32 threads allocate, verify and free, and wait on a condition
//
// It prints "ready" first. A byte of its input makes it print whether all is as it was, and with
// `threads` the number of rounds so far. It ends with its input.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BLOCKS = 40000,
    BLOCK_BYTES = 1000,
    THREADS = 32,
    OWN_BLOCKS = 200,
};

static _Atomic unsigned long rounds;
static _Atomic unsigned long wrong;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;

// Leave the memory of all blocks but the last one free.
static void fill(void)
{
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
        memset(blocks[i], 1, BLOCK_BYTES);
    }
    for (int i = 0; i < BLOCKS - 1; i++) {
        free(blocks[i]);
    }
}

// read(2) of a byte, with values in registers that no call has to keep. Returns what it returned,
// or -2 if a value has changed.
static long read_with_values(char *byte)
{
    static const uint64_t values[4] = {0x1111, 0x2222, 0x3333, 0x4444};
    uint64_t after[4] = {0};
    uint64_t flags = 0;
    long result = SYS_read;
    __asm__ volatile("movdqu (%[values]), %%xmm0\n"
                     "movdqu 16(%[values]), %%xmm15\n"
                     "stc\n"
                     "syscall\n"
                     "pushfq\n"
                     "popq %[flags]\n"
                     "movdqu %%xmm0, (%[after])\n"
                     "movdqu %%xmm15, 16(%[after])\n"
                     : "+a"(result), [flags] "=&r"(flags)
                     : "D"(0L), "S"(byte), "d"(1L), [values] "r"(values), [after] "r"(after)
                     : "rcx", "r11", "xmm0", "xmm15", "memory", "cc");
    return memcmp(values, after, sizeof(after)) == 0 && (flags & 1) != 0 ? result : -2;
}

static void serve(void)
{
    char byte;
    errno = 77;
    for (long got = 1; got > 0;) {
        got = read_with_values(&byte);
        if (got != 0) {
            printf("%s %lu\n", got == 1 && errno == 77 && wrong == 0 ? "ok" : "changed", rounds);
            fflush(stdout);
        }
    }
}

static void handle(int signal)
{
    (void)signal;
    serve();
}

static void *work(void *context)
{
    uintptr_t number = (uintptr_t)context;
    for (;;) {
        unsigned char *blocks[OWN_BLOCKS];
        for (unsigned i = 0; i < OWN_BLOCKS; i++) {
            const size_t bytes = 16 + (number * 37 + i * 101) % 3000;
            blocks[i] = malloc(bytes);
            memset(blocks[i], (int)(number + i), bytes);
        }
        for (unsigned i = 0; i < OWN_BLOCKS; i++) {
            const size_t bytes = 16 + (number * 37 + i * 101) % 3000;
            for (size_t k = 0; k < bytes; k++) {
                wrong += blocks[i][k] != (unsigned char)(number + i);
            }
            free(blocks[i]);
        }
        rounds++;
        pthread_mutex_lock(&mutex);
        pthread_cond_broadcast(&turn);
        if (number % 2 == 0) {
            pthread_cond_wait(&turn, &mutex);
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int count, char **words)
{
    const char *mode = count > 1 ? words[1] : "read";
    fill();
    for (uintptr_t i = 0; i < THREADS && strcmp(mode, "threads") == 0; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, (void *)i);
    }
    printf("ready\n");
    fflush(stdout);
    if (strcmp(mode, "busy") == 0) {
        for (volatile unsigned long i = 0;; i++) {
        }
    }
    if (strcmp(mode, "handler") == 0) {
        signal(SIGUSR1, handle);
        raise(SIGUSR1);
    } else {
        serve();
    }
    _exit(0);
}
