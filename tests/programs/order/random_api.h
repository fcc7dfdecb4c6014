// SPDX-License-Identifier: MIT
// random_api: random calls of all functions of cairn.h, for random_heap.c. Blocks that a thread
// reports are reported to the tracer, too (heap_tracer.h). Before some calls the thread pauses for
// about a millisecond, so that the recorder empties what it holds. A timer's handler calls the
// functions that a handler may call and that change no count of blocks.
#pragma once

#include <cairn.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REPORTED_MAX = 16
};

struct api_block {
    void *address; // NULL: not in use
    size_t size;
};

struct api_thread {
    struct api_block reported[REPORTED_MAX];
    struct cairn_scope scope;
    struct cairn_peak peak;
};

void api_begin(void); // before any thread
void api_call(struct api_thread *thread, uint64_t random);
void api_end_thread(struct api_thread *thread); // takes back what it has reported

// Write how many marks, and events of which weight, all processes have made outside of handlers.
void api_write_sums(void);
