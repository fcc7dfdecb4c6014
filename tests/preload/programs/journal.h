// SPDX-License-Identifier: MIT
// journal: what a test program did to its heap, told on stdout, without touching the heap.
//
// Lines of "<kind> <address> <size> <old address>" between two allocations of MARK bytes, which
// tell the reader where the journal begins and ends in the recorded events.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK 12345678u

static char journal_text[1 << 20];
static size_t journal_len;

static inline void note(const char *kind, const volatile void *block, size_t size, const void *old)
{
    journal_len += (size_t)snprintf(journal_text + journal_len, sizeof(journal_text) - journal_len,
                                    "%s %lx %lu %lx\n", kind, (unsigned long)block,
                                    (unsigned long)size, (unsigned long)old);
}

static inline void journal_mark(void)
{
    free(malloc(MARK));
}

static inline void journal_print(void)
{
    size_t at = 0;
    while (at < journal_len) {
        const ssize_t written = write(1, journal_text + at, journal_len - at);
        if (written <= 0) {
            _exit(99);
        }
        at += (size_t)written;
    }
}
