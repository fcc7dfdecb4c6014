// SPDX-License-Identifier: MIT
// freestanding: the functions that compilers call by themselves, since the agent has no libc.
//
// STEP keeps the compiler from turning a loop into a call of the function that has it. Context: T;
// pure.
#include <stddef.h>
#include <stdint.h>

#define STEP() __asm__ volatile("" : : : "memory")

void *memcpy(void *restrict to, const void *restrict from, size_t len_bytes);
void *memmove(void *to, const void *from, size_t len_bytes);
void *memset(void *at, int value, size_t len_bytes);
int memcmp(const void *a, const void *b, size_t len_bytes);
size_t strlen(const char *text);
size_t strnlen(const char *text, size_t max_bytes);

void *memcpy(void *restrict to, const void *restrict from, size_t len_bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    for (size_t i = 0; i < len_bytes; i++) {
        out[i] = in[i];
        STEP();
    }
    return to;
}

void *memmove(void *to, const void *from, size_t len_bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    if ((uintptr_t)out - (uintptr_t)in >= len_bytes) { // wraps around if `to` is before `from`
        return memcpy(to, from, len_bytes);
    }
    for (size_t i = len_bytes; i > 0; i--) {
        out[i - 1] = in[i - 1];
        STEP();
    }
    return to;
}

void *memset(void *at, int value, size_t len_bytes)
{
    uint8_t *out = at;
    for (size_t i = 0; i < len_bytes; i++) {
        out[i] = (uint8_t)value;
        STEP();
    }
    return at;
}

int memcmp(const void *a, const void *b, size_t len_bytes)
{
    const uint8_t *left = a;
    const uint8_t *right = b;
    for (size_t i = 0; i < len_bytes; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return 0;
}

size_t strnlen(const char *text, size_t max_bytes)
{
    size_t length = 0;
    while (length < max_bytes && text[length] != 0) {
        length++;
        STEP();
    }
    return length;
}

size_t strlen(const char *text)
{
    return strnlen(text, SIZE_MAX);
}
