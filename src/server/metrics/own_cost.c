// SPDX-License-Identifier: MIT
// own_cost: see own_cost.h.
#include "server/metrics/own_cost.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"

enum {
    PROCESS_COUNT = 2,
    STATM_MAX_BYTES = 256,
};

static void write_processor_time(const char *name, pid_t pid, FILE *out)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0) {
        (void)fprintf(out,
                      "cairn_own_cpu_seconds_total{process=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n",
                      name, (uint64_t)used.tv_sec, (uint64_t)used.tv_nsec);
    }
}

static void write_resident(const char *name, pid_t pid, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf statm = {0};
    if (proc_file_read(pid, "statm", STATM_MAX_BYTES, &statm)) {
        (void)fprintf(out, "cairn_own_resident_bytes{process=\"%s\"} %" PRIu64 "\n", name,
                      proc_text_pages(strbuf_text(&statm)).resident *
                          (uint64_t)sysconf(_SC_PAGESIZE));
    }
}

void own_cost_write(pid_t recorder, FILE *out)
{
    const struct {
        const char *name;
        pid_t pid;
    } processes[PROCESS_COUNT] = {{"recorder", recorder}, {"server", getpid()}};
    (void)fputs("# HELP cairn_own_cpu_seconds_total Processor time of cairn's processes.\n"
                "# TYPE cairn_own_cpu_seconds_total counter\n",
                out);
    for (size_t i = 0; i < PROCESS_COUNT; i++) {
        write_processor_time(processes[i].name, processes[i].pid, out);
    }
    (void)fputs("# HELP cairn_own_resident_bytes RSS of cairn's processes.\n"
                "# TYPE cairn_own_resident_bytes gauge\n",
                out);
    for (size_t i = 0; i < PROCESS_COUNT; i++) {
        write_resident(processes[i].name, processes[i].pid, out);
    }
}
