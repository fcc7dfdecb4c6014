// SPDX-License-Identifier: MIT
// chosen_allocator: safe_allocator.c, whose functions are chosen when they are looked up (IFUNC).
#define malloc  safe_malloc
#define calloc  safe_calloc
#define realloc safe_realloc
#define free    safe_free
#include "safe_allocator.c"
#undef malloc
#undef calloc
#undef realloc
#undef free

#define CHOSEN(name)                                    \
    static __typeof__(&safe_##name) choose_##name(void) \
    {                                                   \
        return safe_##name;                             \
    }                                                   \
    __typeof__(safe_##name) name __attribute__((ifunc("choose_" #name)))

CHOSEN(malloc);
CHOSEN(calloc);
CHOSEN(realloc);
CHOSEN(free);
