// SPDX-License-Identifier: MIT
// words_of FILE: lists the live blocks of all processes in a file of words, as word_checker.so
// leaves it. A line for each process that has a region: its number; then for each kind of blocks:
// kind, live blocks, their bytes. The last line: stale words.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "heap_tracer.h"
#include "recorder/session/block_words_list.h"

enum {
    KIND_BITS = 4, // of a row, as in word_checker.c
    PROCESSES_MAX = 1024,
};

struct counts {
    uint64_t blocks[1 << KIND_BITS];
    uint64_t bytes[1 << KIND_BITS];
    uint64_t stale;
};

static void count_live(void *context, const struct word_block *block)
{
    struct counts *counts = context;
    const uint32_t kind = block->row % (1 << KIND_BITS);
    counts->blocks[kind]++;
    counts->bytes[kind] += block->size_bytes;
}

static void count_stale(void *context, const struct word_block *block)
{
    struct counts *counts = context;
    (void)block;
    counts->stale++;
}

// Read the numbers of the processes in the file, each once.
static uint32_t find_processes(int fd, uint32_t processes[PROCESSES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WORDS_REGIONS_MAX; i++) {
        uint64_t note = 0;
        const off_t at = (off_t)(offsetof(struct words_file, regions) + i * sizeof(note));
        if (pread(fd, &note, sizeof(note), at) != sizeof(note) || note == 0) {
            break;
        }
        uint32_t k = 0;
        while (k < count && processes[k] != note >> 32) {
            k++;
        }
        if (k == count && count < PROCESSES_MAX) {
            processes[count++] = (uint32_t)(note >> 32);
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    struct counts counts = {0};
    uint32_t processes[PROCESSES_MAX];
    const struct block_words_visitor visitor = {
        .context = &counts, .live = count_live, .stale = count_stale};
    const int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    const uint32_t count = fd >= 0 ? find_processes(fd, processes) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct err_info info = {0};
        if (block_words_list(fd, 0, processes[i], &visitor, &info) != ERR_OK) {
            (void)fprintf(stderr, "%s\n", info.text);
            return 1;
        }
        (void)printf("process %" PRIu32 "\n", processes[i]);
    }
    for (uint32_t kind = 0; kind < TRACER_KINDS; kind++) {
        (void)printf("kind %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", kind, counts.blocks[kind],
                     counts.bytes[kind]);
    }
    (void)printf("stale %" PRIu64 "\n", counts.stale);
    return fd >= 0 ? 0 : 2;
}
