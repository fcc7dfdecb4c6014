// SPDX-License-Identifier: MIT
// page_alloc: whole pages from the kernel, the only dynamic memory of code inside a target.
//
// Memory is anonymous, private, zeroed and costs nothing until it is touched. What was taken is
// noted, so that nobody takes it for the program's; notes can be kept in memory that others read.
// Context: T and H; async-signal-safe; errno is kept. State: g_pages.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES           ((size_t)4096)
#define PAGE_NOTES_MAX       16u
#define PAGE_NOTE_PAGES_BITS 19u // of a note: page number << 19 | pages; 0 where there is none

// Maps at least `len_bytes`, rounded up to whole pages. NULL if the kernel refuses.
void *page_alloc(size_t len_bytes);

// Gives back what page_alloc(len_bytes) returned; NULL is fine.
void page_free(void *memory, size_t len_bytes);

// Copies the notes so far, PAGE_NOTES_MAX of them, to `place` and keeps them up there from now on.
void page_alloc_note_into(_Atomic uint64_t *place);
