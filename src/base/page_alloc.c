// SPDX-License-Identifier: MIT
#include "base/page_alloc.h"

#include <sys/mman.h>

#include "base/sys.h"

// Notes are informational: a reader that comes too early or too late misses one.
static struct {
    _Atomic uint64_t notes[PAGE_NOTES_MAX];
    _Atomic(_Atomic uint64_t *) place; // a second copy; NULL: none
} g_pages;

static uint64_t note_of(const void *memory, size_t len_bytes)
{
    const uint64_t grains_max = ((uint64_t)1 << PAGE_NOTE_GRAINS_BITS) - 1;
    const uint64_t grains = grain_end(len_bytes) / PAGE_GRAIN;
    return (uint64_t)(uintptr_t)memory / PAGE_GRAIN << PAGE_NOTE_GRAINS_BITS |
           (grains < grains_max ? grains : grains_max);
}

// Replace the first note that is `from` by `to`. If there is none, there is no room.
static void change_note(uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < PAGE_NOTES_MAX; i++) {
        uint64_t seen = from;
        // Relaxed, as below: a note guards no other data.
        if (atomic_compare_exchange_strong_explicit(&g_pages.notes[i], &seen, to,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            _Atomic uint64_t *place = atomic_load_explicit(&g_pages.place, memory_order_relaxed);
            if (place != NULL) {
                atomic_store_explicit(&place[i], to, memory_order_relaxed);
            }
            return;
        }
    }
}

void *page_alloc(size_t len_bytes)
{
    if (len_bytes == 0 || len_bytes > PTRDIFF_MAX) {
        return NULL;
    }
    long result = sys_mmap(NULL, grain_end(len_bytes), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_failed(result)) {
        return NULL;
    }
    change_note(0, note_of((void *)result, len_bytes));
    return (void *)result;
}

void page_free(void *memory, size_t len_bytes)
{
    if (memory != NULL) {
        change_note(note_of(memory, len_bytes), 0);
        (void)sys_munmap(memory, grain_end(len_bytes)); // fails only for memory that is not ours
    }
}

void *page_budget_alloc(struct page_budget *budget, size_t len_bytes)
{
    // Relaxed, as below: a sum guards no other data.
    const uint64_t before =
        atomic_fetch_add_explicit(&budget->used_bytes, len_bytes, memory_order_relaxed);
    void *memory = before + len_bytes <= budget->limit_bytes ? page_alloc(len_bytes) : NULL;
    if (memory == NULL) {
        atomic_fetch_sub_explicit(&budget->used_bytes, len_bytes, memory_order_relaxed);
    }
    return memory;
}

void page_budget_free(struct page_budget *budget, void *memory, size_t len_bytes)
{
    if (memory != NULL) {
        page_free(memory, len_bytes);
        atomic_fetch_sub_explicit(&budget->used_bytes, len_bytes, memory_order_relaxed);
    }
}

void page_alloc_note(const void *memory, size_t len_bytes)
{
    const uint64_t note = note_of(memory, len_bytes);
    for (uint32_t i = 0; i < PAGE_NOTES_MAX; i++) {
        if (atomic_load_explicit(&g_pages.notes[i], memory_order_relaxed) == note) {
            return;
        }
    }
    change_note(0, note);
}

void page_alloc_note_into(_Atomic uint64_t *place)
{
    atomic_store_explicit(&g_pages.place, place, memory_order_relaxed);
    for (uint32_t i = 0; i < PAGE_NOTES_MAX; i++) {
        atomic_store_explicit(&place[i],
                              atomic_load_explicit(&g_pages.notes[i], memory_order_relaxed),
                              memory_order_relaxed);
    }
}
