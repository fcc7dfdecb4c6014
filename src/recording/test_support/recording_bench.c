// SPDX-License-Identifier: MIT
// recording_bench: size of a recording, and the time to write and to open it.
//
//   recording_bench NODES [LEVEL]     realistic tables of about NODES stack nodes
//
// Prints the medians of five rounds. Context: H; a tool of the developers, not installed.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/text/number.h"
#include "recording/format/schema.h"
#include "recording/read/recording_reader.h"
#include "recording/test_support/recording_bytes.h"
#include "recording/test_support/recording_random.h"
#include "recording/write/recording_writer.h"

enum {
    ROUNDS = 5
};

static double now_ms(void)
{
    return (double)clock_monotonic_ns() / NS_PER_MS;
}

static int compare_times(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double times[ROUNDS])
{
    qsort(times, ROUNDS, sizeof(*times), compare_times);
    return times[ROUNDS / 2];
}

static uint64_t memory_bytes(const struct recording *recording)
{
    uint64_t bytes = recording->strings.data_bytes + 8ULL * recording->strings.count;
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        if (rec_tables[i].columns != NULL && !rec_tables[i].is_single) {
            bytes += rec_table_count(&rec_tables[i], recording) * rec_tables[i].entry_bytes;
        }
    }
    return bytes;
}

int main(int argc, char **argv)
{
    size_t nodes = argc > 1 ? number_field(argv[1]) : 100000;
    struct recording_write_options options = {.level = argc > 2 ? (int)number_field(argv[2]) : 0};
    CLEANUP(recording_release) struct recording recording = {0};
    struct err_info info = {0};
    char path[64];
    double write_ms[ROUNDS];
    double open_ms[ROUNDS];
    struct recording_open_result result = {0};
    (void)snprintf(path, sizeof(path), "/tmp/recording_bench.%d", (int)getpid());
    if (recording_random_realistic(7, nodes, &recording) != ERR_OK) {
        return 1;
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        CLEANUP(recording_release) struct recording opened = {0};
        double start = now_ms();
        if (recording_write(&recording, path, &options, &info) != ERR_OK) {
            (void)fprintf(stderr, "%s\n", info.text);
            return 1;
        }
        write_ms[i] = now_ms() - start;
        start = now_ms();
        if (recording_open(path, &opened, &result, &info) != ERR_OK) {
            (void)fprintf(stderr, "%s\n", info.text);
            return 1;
        }
        open_ms[i] = now_ms() - start;
    }
    (void)unlink(path); // on failure the file stays
    (void)printf(
        "%zu nodes, %zu rows, %zu cells, %llu allocations: %llu bytes in the file, %llu in "
        "memory, write %.1f ms, open %.1f ms\n",
        recording.node_count, recording.row_count, recording.cell_count,
        (unsigned long long)recording.totals.allocations, (unsigned long long)result.file_bytes,
        (unsigned long long)memory_bytes(&recording), median(write_ms), median(open_ms));
    return 0;
}
