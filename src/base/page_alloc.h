// SPDX-License-Identifier: MIT
// page_alloc: whole pages from the kernel, the only dynamic memory of code inside a target.
//
// Memory is anonymous, private, zeroed and costs nothing until it is touched. Each range is noted,
// so that it is not attributed to the program; the notes can be in memory that others read.
// Context: T and H; async-signal-safe; errno is kept. State: g_pages.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/page.h"

#define PAGE_NOTES_MAX 16u
// Of a note: start / PAGE_GRAIN << 19 | length / PAGE_GRAIN, rounded up; 0 is an empty note.
#define PAGE_NOTE_GRAINS_BITS 19u

// Map at least `len_bytes`, rounded up to whole pages. NULL if the kernel refuses.
void *page_alloc(size_t len_bytes);

// Give back the result of page_alloc(len_bytes). NULL is allowed.
void page_free(void *memory, size_t len_bytes);

// Memory that together never exceeds a limit.
struct page_budget {
    uint64_t limit_bytes;
    _Atomic uint64_t used_bytes;
};

// Do page_alloc within a budget. NULL, too, if that would be exceeded.
void *page_budget_alloc(struct page_budget *budget, size_t len_bytes);

// Give back the result of page_budget_alloc(len_bytes). NULL is allowed.
void page_budget_free(struct page_budget *budget, void *memory, size_t len_bytes);

// Note a range that was mapped for us by another process.
void page_alloc_note(const void *memory, size_t len_bytes);

// Copy the present notes, PAGE_NOTES_MAX of them, to `place`, and keep them up to date there.
void page_alloc_note_into(_Atomic uint64_t *place);
