// SPDX-License-Identifier: MIT
// waiting_allocator: a thread that waits inside an allocator, and returns when it is told to.
// Executes the commands that it reads, one per line, and writes "done" after each.
//
//   w   begins a thread that calls own_malloc(48), and waits until it is inside
//   g   lets the thread go on, and waits for its end
//   a   own_malloc(32)
//   p   nothing
//   q   returns from main, with status 1 if the thread got another block than it should
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static _Alignas(64) unsigned char g_pool[1 << 20];
static unsigned char *g_next = g_pool;
static sem_t g_inside;
static sem_t g_go;
static _Thread_local int g_waits;
static void *g_got;

__attribute__((noinline)) void *own_malloc(size_t size)
{
    unsigned char *block = __atomic_fetch_add(&g_next, (size + 63) / 64 * 64, __ATOMIC_RELAXED);
    if (g_waits) {
        (void)sem_post(&g_inside);
        while (sem_wait(&g_go) != 0) {
        }
    }
    return block;
}

static void *wait_inside(void *unused)
{
    (void)unused;
    g_waits = 1;
    g_got = own_malloc(48);
    return NULL;
}

int main(void)
{
    char command[2];
    pthread_t thread = 0;
    int status = 0;
    (void)sem_init(&g_inside, 0, 0);
    (void)sem_init(&g_go, 0, 0);
    while (read(0, command, 2) == 2 && command[0] != 'q') {
        if (command[0] == 'w') {
            status |= pthread_create(&thread, NULL, wait_inside, NULL) != 0;
            (void)sem_wait(&g_inside);
        } else if (command[0] == 'g') {
            (void)sem_post(&g_go);
            (void)pthread_join(thread, NULL);
            status |= g_got != g_pool;
        } else if (command[0] == 'a') {
            memset(own_malloc(32), 1, 32);
        }
        (void)!write(1, "done\n", 5);
    }
    return status;
}
