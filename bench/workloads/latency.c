// SPDX-License-Identifier: MIT
// latency: how long single calls of malloc and free take.
//
// `threads` threads make `pairs` pairs each, as churn does: 1000 live blocks a thread of 16 to 270
// bytes; a pair frees a random one and makes a new one. Each call is timed by CLOCK_MONOTONIC and
// counted in a histogram with eight buckets to an octave, so a figure is at most 9 % too high.
// With more threads than processors a call also takes the time in which its thread does not run.
// So the calls in which a thread gave its processor up by itself are counted apart: this program
// never waits otherwise. An operation is a pair.

#include "workload.h"

#include <string.h>
#include <sys/resource.h>

#define LIVE        1000
#define THREADS_MAX 64
#define OCTAVES     40
#define BUCKETS     (OCTAVES * 8)
#define SLOW_NS     20000 // a call that waits takes longer

struct timing {
    uint64_t counts[BUCKETS];
    uint64_t most_ns;
};

struct lane {
    struct timing alloc;
    struct timing release;
    uint64_t waits;       // calls in which the thread waited
    uint64_t most_waited; // ns
    long switches;        // voluntary ones, as known
};

static struct lane g_lanes[THREADS_MAX];
static uint64_t g_pairs = 1000000;

static uint32_t bucket_of(uint64_t ns)
{
    const int octave = 63 - __builtin_clzll(ns | 8);
    const uint32_t bucket = (uint32_t)(octave - 3) * 8 + (uint32_t)((ns | 8) >> (octave - 3) & 7);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

// Return the upper end of a bucket.
static uint64_t bucket_end(uint32_t bucket)
{
    return (uint64_t)(8 + bucket % 8 + 1) << (bucket / 8);
}

static long voluntary_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static void note(struct lane *lane, struct timing *timing, uint64_t ns)
{
    timing->counts[bucket_of(ns)]++;
    timing->most_ns = ns > timing->most_ns ? ns : timing->most_ns;
    if (ns < SLOW_NS) {
        return;
    }
    const long switches = voluntary_switches();
    if (switches != lane->switches) {
        lane->switches = switches;
        lane->waits++;
        lane->most_waited = ns > lane->most_waited ? ns : lane->most_waited;
    }
}

static void run(void *unused, uint32_t index)
{
    (void)unused;
    struct lane *lane = &g_lanes[index];
    struct workload_random random = workload_random_from(index);
    void *blocks[LIVE] = {0};
    lane->switches = voluntary_switches();
    for (uint64_t i = 0; i < g_pairs; i++) {
        const uint32_t slot = workload_random_below(&random, LIVE);
        const uint32_t bytes = 16 + workload_random_below(&random, 255);
        const uint64_t begin = workload_now_ns();
        free(blocks[slot]);
        const uint64_t between = workload_now_ns();
        blocks[slot] = workload_alloc(bytes);
        const uint64_t end = workload_now_ns();
        note(lane, &lane->release, between - begin);
        note(lane, &lane->alloc, end - between);
    }
    for (uint32_t i = 0; i < LIVE; i++) {
        free(blocks[i]);
    }
}

static void add(struct timing *sum, const struct timing *part)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        sum->counts[i] += part->counts[i];
    }
    sum->most_ns = part->most_ns > sum->most_ns ? part->most_ns : sum->most_ns;
}

// Return the time that one in `one_in` calls exceeds.
static uint64_t exceeded_by(const struct timing *timing, uint64_t one_in)
{
    uint64_t calls = 0;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        calls += timing->counts[i];
    }
    uint64_t above = 0;
    for (uint32_t i = BUCKETS; i-- > 0;) {
        above += timing->counts[i];
        if (above > calls / one_in) {
            return bucket_end(i);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t threads = 1;
    const struct workload_param params[] = {
        {"threads", &threads, 1, THREADS_MAX, "threads"},
        {"pairs", &g_pairs, 1, UINT64_MAX / 2, "malloc and free pairs of each thread"},
        {0},
    };
    workload_args(argc, argv, params);
    const uint64_t loop_ns = workload_run_threads((uint32_t)threads, run, NULL);
    struct lane all;
    memset(&all, 0, sizeof(all));
    for (uint32_t i = 0; i < threads; i++) {
        const struct lane *lane = &g_lanes[i];
        add(&all.alloc, &lane->alloc);
        add(&all.release, &lane->release);
        all.waits += lane->waits;
        all.most_waited = lane->most_waited > all.most_waited ? lane->most_waited : all.most_waited;
    }
    const struct workload_figure figures[] = {
        {"threads", threads},
        {"malloc_p50_ns", exceeded_by(&all.alloc, 2)},
        {"malloc_p9999_ns", exceeded_by(&all.alloc, 10000)},
        {"malloc_max_ns", all.alloc.most_ns},
        {"free_p50_ns", exceeded_by(&all.release, 2)},
        {"free_p9999_ns", exceeded_by(&all.release, 10000)},
        {"free_max_ns", all.release.most_ns},
        {"waits", all.waits},
        {"waited_max_ns", all.most_waited},
        {NULL, 0},
    };
    workload_report("latency", g_pairs, loop_ns, figures);
    return 0;
}
