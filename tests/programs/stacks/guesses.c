// SPDX-License-Identifier: MIT
// guesses: code without unwind tables keeps data in the frame pointer's register. That data looks
// like frames with return addresses in a library that another thread opens and closes all the time.
// Its arguments are the library and a function in it. Prints its results.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OPENS  400
#define FRAMES 32

// Call function(size) with `frames` as the frame pointer.
void *call_without_table(size_t size, void *(*function)(size_t), const void *frames);

struct frame {
    const struct frame *caller;
    uint64_t ret_addr;
};

static _Atomic uint64_t g_inside;
static atomic_bool g_is_done;

static void *open_and_close(void *arguments)
{
    char **names = arguments;
    for (int i = 0; i < OPENS; i++) {
        void *library = dlopen(names[0], RTLD_NOW);
        if (library == NULL) {
            abort();
        }
        g_inside = (uint64_t)dlsym(library, names[1]);
        (void)dlclose(library);
    }
    g_is_done = 1;
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    if (count != 3 || pthread_create(&thread, NULL, open_and_close, arguments + 1) != 0) {
        return 1;
    }
    uint64_t blocks = 0;
    while (!g_is_done) {
        const uint64_t inside = g_inside;
        volatile struct frame frames[FRAMES];
        for (unsigned i = 0; i < FRAMES; i++) {
            frames[i].caller = (const struct frame *)(i + 1 < FRAMES ? &frames[i + 1] : NULL);
            frames[i].ret_addr = inside + (blocks * FRAMES + i) % 64;
        }
        free(call_without_table(512, malloc, (const void *)frames));
        blocks++;
    }
    (void)pthread_join(thread, NULL);
    printf("%llu\n", (unsigned long long)blocks);
    return 0;
}
