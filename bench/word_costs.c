// SPDX-License-Identifier: MIT
// word_costs: what the words of live blocks cost: docs/design/words.md.
//
//     word_costs pairs       ns a put and take, of blocks that are used again and again, and of
//                            blocks in a heap of 64 MB, in random order
//     word_costs memory      bytes of words a block, by its size, in a heap of 200 MB
//
//     word_costs sum         ns an event of the shared sum, by threads: events that stay in the
//                            thread's batch, and events of which each is added
//
// Addresses are made up, as glibc would give them out: no allocator takes part, and no heap is
// touched.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "session/books/peak_share.h"
#include "session/books/shared_sum.h"
#include "target/producer/words/live_words.h"

enum {
    PAIRS = 20000000,
    ROUNDS = 5,
    HOT_BLOCKS = 32,
    COLD_BYTES = 64 << 20,
    HEAP_BYTES = 200 << 20,
    SUM_EVENTS = 2000000,
    SUM_THREADS_MAX = 4,
};
#define BASE ((uint64_t)0x555500000000)

static int g_fd = -1;

static _Noreturn void fail(const char *why)
{
    (void)fprintf(stderr, "word_costs: %s\n", why);
    exit(1);
}

static long open_again(const void *context)
{
    (void)context;
    return dup(g_fd);
}

static struct process_words *open_words(void)
{
    const struct words_source source = {.open = open_again};
    const uint64_t magic = WORDS_MAGIC;
    g_fd = memfd_create("words", MFD_CLOEXEC);
    struct process_words *words = process_words_new();
    if (g_fd < 0 || ftruncate(g_fd, (off_t)WORDS_FILE_BYTES) != 0 ||
        pwrite(g_fd, &magic, sizeof(magic), 0) != sizeof(magic) || words == NULL ||
        process_words_open(words, &source, 1, NULL) != ERR_OK)
        fail("no words");
    return words;
}

static uint64_t extent_of(uint64_t size)
{
    return size <= 24 ? 32 : (size + 8 + 15) / 16 * 16;
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); // cannot fail for this clock
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void put(struct process_words *words, uint64_t address, uint64_t size)
{
    const struct word_block block = {.address = address, .size_bytes = size, .row = 1};
    struct words_ended ended;
    if (!words_put(words, &block, &ended) || ended.count != 0)
        fail("a put failed");
}

static void take(struct process_words *words, uint64_t address)
{
    struct word_block block;
    if (!words_take(words, address, &block))
        fail("a word is missing");
}

// Put and take `count` blocks, spread over `step` bytes each, in the order of `next`.
static double pairs(struct process_words *words,
                    const uint32_t *order,
                    uint32_t count,
                    uint64_t step,
                    uint64_t size)
{
    for (uint32_t i = 0; i < count; i++)
        put(words, BASE + i * step, size);
    const double before = seconds();
    for (uint32_t done = 0; done < PAIRS / 4; done++) {
        const uint64_t address = BASE + order[done % count] * step;
        take(words, address);
        put(words, address, size);
    }
    const double took = seconds() - before;
    for (uint32_t i = 0; i < count; i++)
        take(words, BASE + i * step);
    return took / (PAIRS / 4) * 1e9;
}

static uint32_t *shuffled(uint32_t count)
{
    uint32_t *order = malloc(count * sizeof *order);
    uint64_t random = 88172645463325252u;
    if (order == NULL)
        fail("no memory");
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t k = (uint32_t)((random >> 32) % i);
        const uint32_t swapped = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swapped;
    }
    return order;
}

static void measure_pairs(void)
{
    static const uint64_t sizes[] = {40, 500, 8000};
    struct process_words *words = open_words();
    (void)printf("size  blocks     ns a put and take, least of %d\n", ROUNDS);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint64_t step = extent_of(sizes[i]);
        const uint32_t counts[] = {HOT_BLOCKS, (uint32_t)(COLD_BYTES / step)};
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t *order = shuffled(counts[k]);
            double least = 1e9;
            for (int round = 0; round < ROUNDS; round++) {
                const double ns = pairs(words, order, counts[k], step, sizes[i]);
                least = ns < least ? ns : least;
            }
            (void)printf("%4" PRIu64 "  %7u  %8.1f\n", sizes[i], counts[k], least);
            free(order);
        }
    }
}

static void measure_memory(void)
{
    static const uint64_t sizes[] = {40, 100, 200, 500, 1000, 2000, 8000, 30000, 200000};
    (void)printf("  size  bytes of words a block   %% of the heap\n");
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct process_words *words = open_words();
        const uint64_t step = extent_of(sizes[i]);
        const uint64_t count = HEAP_BYTES / step;
        struct stat file;
        for (uint64_t k = 0; k < count; k++)
            put(words, BASE + 16 + k * step, sizes[i]);
        for (uint64_t k = 0; k < count; k++)
            take(words, BASE + 16 + k * step);
        if (fstat(g_fd, &file) != 0)
            fail("no words");
        const double bytes = (double)file.st_blocks * 512 / (double)count;
        (void)printf("%6" PRIu64 "  %23.1f  %14.2f\n", sizes[i], bytes, bytes * 100 / (double)step);
        (void)close(g_fd);
    }
}

static struct shared_sum g_sum;

struct adder {
    pthread_t thread;
    int64_t step; // of each event; below the batch, or above it
    double ns;
    struct peak_share share;
};

static void *add_events(void *context)
{
    struct adder *adder = context;
    struct sum_part part;
    shared_sum_join(&g_sum, &part);
    const double before = seconds();
    for (uint32_t i = 0; i < SUM_EVENTS; i++) {
        const int64_t delta = i % 2 == 0 ? adder->step : -adder->step;
        const uint32_t number = shared_sum_number(&g_sum);
        peak_share_add(&adder->share, shared_sum_add(&g_sum, &part, number, delta), delta);
    }
    adder->ns = (seconds() - before) / SUM_EVENTS * 1e9;
    (void)shared_sum_send(&g_sum, &part);
    shared_sum_release(&g_sum, &part);
    shared_sum_leave(&g_sum, 1);
    return NULL;
}

static double measure_adders(int threads, int64_t step)
{
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        struct adder adders[SUM_THREADS_MAX];
        double all = 0;
        for (int i = 0; i < threads; i++) {
            adders[i] = (struct adder){.step = step};
            if (pthread_create(&adders[i].thread, NULL, add_events, &adders[i]) != 0)
                fail("no thread");
        }
        for (int i = 0; i < threads; i++) {
            (void)pthread_join(adders[i].thread, NULL); // cannot fail for a thread of ours
            all += adders[i].ns / threads;
        }
        least = all < least ? all : least;
    }
    return least;
}

static void measure_sum(void)
{
    (void)printf("threads  kept  added    ns of processor time an event, least of %d\n", ROUNDS);
    for (int threads = 1; threads <= SUM_THREADS_MAX; threads *= 2)
        (void)printf("%7d  %4.1f  %5.1f\n", threads, measure_adders(threads, SUM_BATCH_MIN - 8),
                     measure_adders(threads, (int64_t)1 << 20));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "pairs") == 0)
        measure_pairs();
    else if (argc == 2 && strcmp(argv[1], "memory") == 0)
        measure_memory();
    else if (argc == 2 && strcmp(argv[1], "sum") == 0)
        measure_sum();
    else
        fail("usage: word_costs pairs | memory | sum");
    return 0;
}
