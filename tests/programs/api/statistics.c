// SPDX-License-Identifier: MIT
// statistics: counts its operations with cairn_stats and prints one line for each scope. The test
// compares them with the operations below:
//
//   label is_recorded allocations allocated_bytes frees freed_bytes temporary live_blocks
//       live_bytes
#include <cairn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 3,
    BLOCKS = 1000,
};

static void say(const char *label, int is_recorded, const struct cairn_stats *s)
{
    char line[200];
    const int bytes = snprintf(line, sizeof(line),
                               "%s %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                               " %" PRId64 " %" PRId64 "\n",
                               label, is_recorded, s->allocations, s->allocated_bytes, s->frees,
                               s->freed_bytes, s->temporary, s->live_blocks, s->live_bytes);
    (void)!write(STDOUT_FILENO, line, (size_t)bytes); // stdio would allocate
}

static void end(const char *label, const struct cairn_scope *scope)
{
    struct cairn_stats spent;
    const int is_recorded = cairn_scope_end(scope, &spent);
    say(label, is_recorded, &spent);
}

static void *blocks[THREADS][BLOCKS];
static pthread_barrier_t steps;

// Allocate, wait while main reads the statistics, free the blocks of the neighbour.
static void *work(void *argument)
{
    const size_t me = (size_t)argument;
    struct cairn_scope scope;
    pthread_barrier_wait(&steps); // all threads have begun
    pthread_barrier_wait(&steps); // main has begun its scopes
    cairn_scope_begin(&scope, CAIRN_THREAD);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[me][i] = malloc(10 + me);
    }
    end("own", &scope);
    pthread_barrier_wait(&steps); // allocated
    pthread_barrier_wait(&steps); // main has read them
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[(me + 1) % THREADS][i]);
    }
    pthread_barrier_wait(&steps); // freed
    pthread_barrier_wait(&steps); // main has read them
    return NULL;
}

static void in_threads(void)
{
    pthread_t threads[THREADS];
    struct cairn_scope all;
    struct cairn_scope mine;
    pthread_barrier_init(&steps, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    pthread_barrier_wait(&steps);
    cairn_scope_begin(&all, CAIRN_PROCESS);
    cairn_scope_begin(&mine, CAIRN_THREAD);
    pthread_barrier_wait(&steps);
    pthread_barrier_wait(&steps);
    end("allocated", &all); // the other threads wait and have not ended
    pthread_barrier_wait(&steps);
    pthread_barrier_wait(&steps);
    end("freed", &all);
    end("main", &mine);
    pthread_barrier_wait(&steps);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void in_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        struct cairn_stats stats;
        free(malloc(40));
        void *kept = malloc(2);
        const int is_recorded = cairn_stats(CAIRN_PROCESS, &stats);
        say("child", is_recorded, &stats);
        _exit(kept == NULL);
    }
    (void)waitpid(child, NULL, 0);
}

int main(void)
{
    static char memory[64];
    struct cairn_scope whole;
    struct cairn_scope scope;
    cairn_scope_begin(&whole, CAIRN_THREAD);
    cairn_scope_begin(&scope, CAIRN_PROCESS);
    end("nothing", &scope);

    cairn_scope_begin(&scope, CAIRN_PROCESS);
    for (int i = 0; i < 100000; i++) {
        free(malloc(24)); // temporary, and never sent as single events
    }
    end("pairs", &scope);

    cairn_scope_begin(&scope, CAIRN_THREAD);
    void *first = malloc(100);
    void *second = malloc(50);
    first = realloc(first, 300); // an allocation of 300 and a free of 100
    free(second);
    cairn_pool_alloc("pool", memory, 7);
    end("mixed", &scope);
    end("whole", &whole);

    cairn_scope_begin(&scope, CAIRN_THREAD);
    free(first); // allocated before the scope
    end("negative", &scope);

    in_child();
    in_threads();
    return 0;
}
