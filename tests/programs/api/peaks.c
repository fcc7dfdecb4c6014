// SPDX-License-Identifier: MIT
// peaks: asks for the peak of parts of its work and prints one line for each. The test compares
// them with the operations below.
//
//   label is_answered bytes
#include <cairn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 4,
    BLOCKS = 1000,
    SCOPES = 8, // at one time
};

static void say(const char *label, int is_answered, uint64_t bytes)
{
    char line[100];
    const int len = snprintf(line, sizeof(line), "%s %d %" PRIu64 "\n", label, is_answered, bytes);
    (void)!write(STDOUT_FILENO, line, (size_t)len); // stdio would allocate
}

static void end(const char *label, struct cairn_peak *peak)
{
    uint64_t bytes;
    const int is_answered = cairn_peak_end(peak, &bytes);
    say(label, is_answered, bytes);
}

static void alone(void)
{
    struct cairn_peak peak;
    cairn_peak_begin(&peak);
    end("nothing", &peak);
    end("ended", &peak);

    cairn_peak_begin(&peak);
    for (int i = 0; i < 100000; i++) {
        free(malloc(24));
    }
    free(malloc(48)); // many ticks later
    end("pairs", &peak);

    cairn_peak_begin(&peak);
    void *first = malloc(1000);
    void *second = malloc(2000);
    free(first);
    first = malloc(500);
    end("mixed", &peak);

    cairn_peak_begin(&peak);
    free(first); // allocated before the scope
    free(second);
    first = malloc(400);
    end("lower", &peak);

    cairn_peak_begin(&peak);
    first = realloc(first, 1500); // 1100 more
    end("resized", &peak);
    free(first);
}

static void together(void)
{
    struct cairn_peak outer;
    struct cairn_peak inner;
    cairn_peak_begin(&outer);
    void *first = malloc(100);
    cairn_peak_begin(&inner);
    void *second = malloc(200);
    free(malloc(300));
    free(second);
    end("inner", &inner);
    free(first);
    end("outer", &outer);

    cairn_peak_begin(&outer);
    first = malloc(100);
    cairn_peak_begin(&inner);
    second = malloc(50);
    end("early", &outer);
    free(first);
    free(second);
    free(malloc(70));
    end("late", &inner);

    struct cairn_peak all[SCOPES + 1];
    int begun = 0;
    for (int i = 0; i <= SCOPES; i++) {
        begun += cairn_peak_begin(&all[i]);
    }
    say("begun", begun != 0, (uint64_t)begun);
    for (int i = 0; i <= SCOPES; i++) {
        uint64_t bytes;
        begun -= cairn_peak_end(&all[i], &bytes);
    }
    say("left", 0, (uint64_t)begun);
}

static char memory[THREADS][BLOCKS][16];

// Works with blocks of its own pool: other threads never get their addresses.
static void *work(void *argument)
{
    const size_t me = (size_t)argument;
    struct cairn_peak peak;
    cairn_peak_begin(&peak);
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            cairn_pool_alloc("mine", memory[me][i], 10 + me);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            cairn_report_free(memory[me][i]);
        }
    }
    end("own", &peak);
    return NULL;
}

static void *free_it(void *block)
{
    free(block);
    return NULL;
}

static void in_threads(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct cairn_peak peak;
    cairn_peak_begin(&peak);
    // glibc may reuse an older table of the thread.
    pthread_create(&threads[0], NULL, free_it, malloc(1000000));
    pthread_join(threads[0], NULL);
    void *after = malloc(600000);
    end("freed_elsewhere", &peak);
    free(after);
}

static void in_child(void)
{
    struct cairn_peak peak;
    cairn_peak_begin(&peak);
    const pid_t child = fork();
    if (child == 0) {
        end("inherited", &peak);
        cairn_peak_begin(&peak);
        free(malloc(40));
        end("child", &peak);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    free(malloc(60));
    end("parent", &peak);
}

int main(void)
{
    free(malloc(10000000)); // the peak of the whole run, much higher than all below
    alone();
    together();
    in_threads();
    in_child();
    return 0;
}
