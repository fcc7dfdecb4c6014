// SPDX-License-Identifier: MIT
// workload: see the header. The only state is the path of the result, set once before threads
// start.

#include "workload.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *g_result_path;

struct thread_start {
    pthread_barrier_t *start;
    void (*body)(void *arg, uint32_t index);
    void *arg;
    uint32_t index;
};

static _Noreturn void usage(const char *program, const struct workload_param *params)
{
    (void)fprintf(stderr, "usage: %s [name=value]... [result=FILE]\n", program);
    for (const struct workload_param *p = params; p->name; p++) {
        (void)fprintf(stderr, "  %-12s %s (default %" PRIu64 ", %" PRIu64 " to %" PRIu64 ")\n",
                      p->name, p->help, *p->value, p->min, p->max);
    }
    exit(2);
}

static bool
set_param(const struct workload_param *params, const char *name, size_t len, const char *text)
{
    for (const struct workload_param *p = params; p->name; p++) {
        if (strlen(p->name) != len || strncmp(p->name, name, len) != 0) {
            continue;
        }
        char *end = NULL;
        errno = 0;
        uint64_t value = strtoull(text, &end, 10);
        if (errno || end == text || *end || value < p->min || value > p->max) {
            return false;
        }
        *p->value = value;
        return true;
    }
    return false;
}

void workload_args(int argc, char **argv, const struct workload_param *params)
{
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (!equals) {
            usage(argv[0], params);
        }
        size_t len = (size_t)(equals - argv[i]);
        if (strncmp(argv[i], "result=", 7) == 0) {
            g_result_path = equals + 1;
        } else if (!set_param(params, argv[i], len, equals + 1)) {
            usage(argv[0], params);
        }
    }
    if (getenv("CAIRN_BENCH_STOP") != NULL) {
        (void)raise(SIGSTOP); // a profiler attaches meanwhile: bench/attached.py
    }
}

uint64_t workload_now_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        abort();
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *thread_main(void *arg)
{
    struct thread_start *start = arg;
    (void)pthread_barrier_wait(start->start);
    start->body(start->arg, start->index);
    return NULL;
}

uint64_t workload_run_threads(uint32_t threads, void (*body)(void *arg, uint32_t index), void *arg)
{
    const uint32_t count = threads != 0 ? threads : 1;
    if (threads == 1) {
        uint64_t begin = workload_now_ns();
        body(arg, 0);
        return workload_now_ns() - begin;
    }
    pthread_barrier_t barrier;
    pthread_t *handles = workload_alloc(count * sizeof(*handles));
    struct thread_start *starts = workload_alloc(count * sizeof(*starts));
    if (pthread_barrier_init(&barrier, NULL, count + 1) != 0) {
        abort();
    }
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = (struct thread_start){&barrier, body, arg, i};
        if (pthread_create(&handles[i], NULL, thread_main, &starts[i]) != 0) {
            (void)fprintf(stderr, "cannot create thread %" PRIu32 "\n", i);
            exit(1);
        }
    }
    (void)pthread_barrier_wait(&barrier);
    uint64_t begin = workload_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_join(handles[i], NULL);
    }
    uint64_t end = workload_now_ns();
    (void)pthread_barrier_destroy(&barrier);
    free(handles);
    free(starts);
    return end - begin;
}

void workload_report(const char *name,
                     uint64_t ops,
                     uint64_t loop_ns,
                     const struct workload_figure *figures)
{
    FILE *out = g_result_path ? fopen(g_result_path, "w") : stdout;
    if (!out) {
        (void)fprintf(stderr, "%s: %s\n", g_result_path, strerror(errno));
        exit(1);
    }
    (void)fprintf(out, "{\"workload\": \"%s\", \"ops\": %" PRIu64 ", \"loop_ns\": %" PRIu64, name,
                  ops, loop_ns);
    for (const struct workload_figure *f = figures; f && f->name; f++) {
        (void)fprintf(out, ", \"%s\": %" PRIu64, f->name, f->value);
    }
    (void)fprintf(out, "}\n");
    bool failed = ferror(out) != 0;
    if (out != stdout) {
        failed |= fclose(out) != 0;
    }
    if (failed) {
        (void)fprintf(stderr, "the result could not be written\n");
        exit(1);
    }
}

void workload_out_of_memory(void)
{
    (void)fprintf(stderr, "out of memory\n");
    exit(1);
}
