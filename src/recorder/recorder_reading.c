// SPDX-License-Identifier: MIT
// recorder_reading: what is read of processes for samples and memory snapshots, aside. See
// recorder_breakdown.h.
//
// The kernel reads the map of a process under a lock that the process can hold without end, and a
// long map takes some tenths of a second. A page of its memory may not answer.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "recorder/outside/glibc_heap.h"
#include "recorder/outside/huge_pages.h"
#include "recorder/outside/thread_stacks.h"
#include "recorder/recorder_breakdown.h"

static void map_reading_free(void *context)
{
    struct map_reading *reading = context;
    map_reading_release(reading);
    free(reading);
}

void map_reading_release(struct map_reading *reading)
{
    memory_areas_release(&reading->map);
    u64_vec_release(&reading->tops);
    u64_vec_release(&reading->pointers);
    foreign_heap_release(&reading->foreign);
    fd_closep(&reading->pagemap);
}

// Do a part of a reading aside.
static enum err
read_part(struct recorder_state *s, void (*run)(void *context), struct map_reading *reading)
{
    struct map_reading *moved = malloc(sizeof(*moved));
    if (moved == NULL) {
        map_reading_release(reading);
        return ERR_NO_MEMORY;
    }
    *moved = *reading;
    *reading = (struct map_reading){.pid = moved->pid, .pagemap = -1};
    const struct aside_work work = {.run = run, .release = map_reading_free, .context = moved};
    TRY(recorder_do_aside(s, &work));
    if (moved->result != ERR_OK) {
        const enum err err = moved->result;
        map_reading_free(moved);
        return err;
    }
    *reading = *moved;
    free(moved);
    return ERR_OK;
}

static void read_map(void *context)
{
    struct map_reading *reading = context;
    reading->result = memory_areas_read(proc_file_living(reading->pid), &reading->map);
    reading->processor_ns += clock_thread_cpu_ns();
}

enum err recorder_read_map(struct recorder_state *s, struct map_reading *reading)
{
    return read_part(s, read_map, reading);
}

static enum err find_outside(struct map_reading *reading)
{
    const pid_t pid = proc_file_living(reading->pid);
    CLEANUP(fd_closep) int memory_fd = proc_file_open(pid, "mem");
    reading->pagemap = proc_file_open(pid, "pagemap");
    const struct memory_source memory = {.read = memory_read, .context = &memory_fd};
    const struct page_source pages = {.read = reading->pagemap >= 0 ? pagemap_read : NULL,
                                      .context = &reading->pagemap};
    memory_areas_bound_bss(&reading->map, memory_fd, &pages);
    huge_pages_estimate(&reading->map, &memory, &pages);
    TRY(thread_stacks_find(pid, &reading->map, &memory, &pages, &reading->tops,
                           &reading->pointers));
    u64_vec_sort_numbers(&reading->tops);
    return reading->reads_heap
               ? glibc_heap_read(&reading->map, &memory, &reading->tops, &reading->foreign)
               : glibc_heap_read_tops(&reading->map, &memory, &reading->foreign);
}

static void read_outside(void *context)
{
    struct map_reading *reading = context;
    reading->result = find_outside(reading);
    reading->processor_ns += clock_thread_cpu_ns();
}

enum err recorder_read_outside(struct recorder_state *s, struct map_reading *reading)
{
    return read_part(s, read_outside, reading);
}

struct pages_reading {
    struct page_wants wants;
    int pagemap;
    uint64_t processor_ns;
};

static void pages_reading_free(void *context)
{
    struct pages_reading *reading = context;
    page_wants_release(&reading->wants);
    fd_closep(&reading->pagemap);
    free(reading);
}

static void read_pages(void *context)
{
    struct pages_reading *reading = context;
    const struct page_source source = {.read = pagemap_read, .context = &reading->pagemap};
    page_wants_read(&reading->wants, &source);
    reading->processor_ns = clock_thread_cpu_ns();
}

enum err recorder_read_pages(struct recorder_state *s,
                             int *pagemap,
                             struct page_wants *wants,
                             uint64_t *processor_ns)
{
    struct pages_reading *reading = malloc(sizeof(*reading));
    if (reading == NULL) {
        return ERR_NO_MEMORY;
    }
    *reading = (struct pages_reading){.wants = *wants, .pagemap = *pagemap};
    *wants = (struct page_wants){0};
    *pagemap = -1;
    const struct aside_work work = {
        .run = read_pages, .release = pages_reading_free, .context = reading};
    TRY(recorder_do_aside(s, &work));
    *wants = reading->wants;
    *pagemap = reading->pagemap;
    *processor_ns += reading->processor_ns;
    free(reading);
    return ERR_OK;
}

// All processes of a round are read one after another. If one of them does not let itself be read,
// what was read before is taken, so that this one is known.
struct round_reading {
    struct proc_reading *items; // owned
    size_t count;
    _Atomic size_t done;     // the items before are final
    _Atomic uint32_t owners; // of the two threads
    uint64_t processor_ns;
};

static void let_round_go(void *context)
{
    struct round_reading *reading = context;
    // Acquire and release: the last one frees what the other has used.
    if (atomic_fetch_sub_explicit(&reading->owners, 1, memory_order_acq_rel) == 1) {
        free(reading->items);
        free(reading);
    }
}

static void read_round(void *context)
{
    struct round_reading *reading = context;
    for (size_t i = 0; i < reading->count; i++) {
        proc_reading_take(reading->items + i);
        // Release: pairs with the acquire of read_items.
        atomic_store_explicit(&reading->done, i + 1, memory_order_release);
    }
    reading->processor_ns = clock_thread_cpu_ns();
}

// Read the samples of several processes. After ERR_LIMIT the one at *out_done is at fault.
static enum err read_items(struct recorder_state *s,
                           struct proc_reading *items,
                           size_t count,
                           size_t *out_done,
                           uint64_t *processor_ns)
{
    struct round_reading *reading = calloc(1, sizeof(*reading));
    struct proc_reading *copies = calloc(count, sizeof(*copies));
    *out_done = 0;
    if (reading == NULL || copies == NULL) {
        free(reading);
        free(copies);
        return ERR_NO_MEMORY;
    }
    memcpy(copies, items, count * sizeof(*copies));
    *reading = (struct round_reading){.items = copies, .count = count, .owners = 2};
    const struct aside_work work = {.run = read_round, .release = let_round_go, .context = reading};
    const enum err err = recorder_do_aside(s, &work);
    *out_done = atomic_load_explicit(&reading->done, memory_order_acquire);
    memcpy(items, copies, *out_done * sizeof(*copies));
    if (err == ERR_OK) {
        *processor_ns += reading->processor_ns;
        let_round_go(reading); // the thread's part
    }
    let_round_go(reading);
    return err;
}

DEFINE_VEC(proc_reading_vec, struct proc_reading);

struct sampling {
    struct living_process_vec living; // owned
    struct proc_reading_vec readings; // owned; the same
    uint64_t now_ms;
    bool is_main_confined;
};

static void sampling_release(struct sampling *sampling)
{
    living_process_vec_release(&sampling->living);
    proc_reading_vec_release(&sampling->readings);
}

static void put_sample(struct recorder_state *s, struct sampling *sampling, size_t index)
{
    struct living_process *living = sampling->living.items + index;
    const struct proc_reading *reading = sampling->readings.items + index;
    if (!recorder_find_again(s, living)) {
        return; // it has ended meanwhile
    }
    recorder_follow_note_image(s, living->slot, reading->image, sampling->now_ms);
    if (reading->sample.rss_bytes > 0) {
        proc_sampler_put(&s->sampler, reading, living->process, sampling->now_ms);
    }
    if (living->slot == s->drain.main_slot) {
        sampling->is_main_confined = reading->is_confined;
    }
}

// Read each process. One that does not let itself be read is left out.
static void read_all(struct recorder_state *s, struct sampling *sampling, uint64_t *processor_ns)
{
    const size_t count = sampling->readings.len;
    for (size_t first = 0; first < count;) {
        struct proc_reading *readings = sampling->readings.items + first;
        size_t done = 0;
        const enum err err = read_items(s, readings, count - first, &done, processor_ns);
        for (size_t i = first; i < first + done; i++) {
            put_sample(s, sampling, i);
        }
        first += done;
        if (err != ERR_OK && err != ERR_LIMIT) {
            return; // the next round may have room
        }
        if (err == ERR_LIMIT && first < count) {
            const struct living_process *late = sampling->living.items + first++;
            recorder_note_unread(s, late->process, late->pid, err);
        }
    }
}

uint64_t recorder_sample_all(struct recorder_state *s,
                             uint64_t now_ms,
                             bool follows,
                             bool *out_is_confined,
                             uint64_t *processor_ns)
{
    CLEANUP(sampling_release) struct sampling sampling = {.now_ms = now_ms};
    enum err err = recorder_living(s, &sampling.living);
    for (size_t i = 0; i < sampling.living.len && err == ERR_OK; i++) {
        const struct proc_reading reading = {.pid = sampling.living.items[i].pid,
                                             .is_brief = follows && i == 0};
        err = proc_reading_vec_push(&sampling.readings, reading);
    }
    if (err != ERR_OK) {
        return 0; // the next round may have memory
    }
    read_all(s, &sampling, processor_ns);
    *out_is_confined = sampling.is_main_confined;
    return proc_sampler_settle(&s->sampler);
}
