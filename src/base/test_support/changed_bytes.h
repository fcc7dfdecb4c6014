// SPDX-License-Identifier: MIT
// changed_bytes: small changes of an input that follow from a seed, and a sum of all that came of
// them.
//
// A test reads hundreds of changed inputs, twice: under the sanitizers it shows what harms, and the
// two sums show whether an outcome follows from its input alone. It says nothing about which is
// right. With CAIRN_SHOW in the environment the test prints each outcome in a line: compare the
// lines before and after a change of the code. Context: tests.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/test_support/random_numbers.h"

struct outcome_sum {
    uint64_t value; // 0 at first
};

static inline void outcome_add(struct outcome_sum *sum, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < len; i++) {
        sum->value = (sum->value ^ bytes[i]) * UINT64_C(0x100000001b3) + 1;
    }
}

static inline void outcome_add_number(struct outcome_sum *sum, uint64_t number)
{
    outcome_add(sum, &number, sizeof(number));
}

// Add a text, and print it if somebody asks.
static inline void outcome_add_text(struct outcome_sum *sum, const char *text)
{
    outcome_add(sum, text, strlen(text) + 1);
    if (getenv("CAIRN_SHOW") != NULL) {
        (void)printf("%016llx %s\n", (unsigned long long)sum->value, text);
    }
}

// Compare the sums of two passes, and say whose they are if they differ.
static inline bool outcomes_agree(const struct outcome_sum sums[2], const char *name)
{
    if (sums[0].value != sums[1].value) {
        (void)fprintf(stderr, "%s: another outcome the second time\n", name);
    }
    return sums[0].value == sums[1].value;
}

static inline size_t below_random(uint64_t *random, size_t bound)
{
    return bound > 0 ? next_random(random) % bound : 0;
}

// The begin of the line that has the byte at `place`, and the begin of the next line.
static inline void
line_around(const uint8_t *data, size_t len, size_t place, size_t *from, size_t *to)
{
    while (place > 0 && data[place - 1] != '\n') {
        place--;
    }
    const uint8_t *end = memchr(data + place, '\n', len - place);
    *from = place;
    *to = end != NULL ? (size_t)(end - data) + 1 : len;
}

// Replace data[from..to) by `part` and return the new length, unless it would exceed `cap`.
static inline size_t
replace_bytes(uint8_t *data, size_t len, size_t cap, size_t from, size_t to, struct bytes part)
{
    if (len - (to - from) + part.len > cap) {
        return len;
    }
    memmove(data + from + part.len, data + to, len - to);
    memcpy(data + from, part.data, part.len);
    return len - (to - from) + part.len;
}

// Change data[0..len) once: a byte, a digit, a span, a line or the end. Return the new length.
static inline size_t change_bytes(uint8_t *data, size_t len, size_t cap, uint64_t *random)
{
    uint8_t copy[256];
    size_t place = below_random(random, len);
    size_t from = place;
    size_t to = place + 1;
    struct bytes part = {.data = copy, .len = 0};
    if (len == 0) {
        return 0;
    }
    switch (below_random(random, 8)) {
    case 0: // another byte of the file
        copy[0] = data[below_random(random, len)];
        part.len = 1;
        break;
    case 1: // any byte
        copy[0] = (uint8_t)next_random(random);
        part.len = 1;
        break;
    case 2: // without some bytes
        to = from + below_random(random, 12);
        to = to < len ? to : len;
        break;
    case 3: // some bytes twice
        to = from;
        part.len = below_random(random, 40);
        part.len = part.len < len - from ? part.len : len - from;
        memcpy(copy, data + from, part.len);
        break;
    case 4: // cut off
        to = len;
        break;
    case 5: // another number
        while (from < len && (data[from] < '0' || data[from] > '9')) {
            from++;
        }
        to = from < len ? from + below_random(random, 2) : from;
        part.len = below_random(random, 16) == 0 ? 20 : 1;
        memset(copy, "0123456789"[below_random(random, 10)], part.len);
        break;
    case 6: // without a line
        line_around(data, len, place, &from, &to);
        break;
    default: // a line twice
        line_around(data, len, place, &from, &to);
        part.len = to - from < sizeof(copy) ? to - from : sizeof(copy);
        memcpy(copy, data + from, part.len);
        to = from;
        break;
    }
    return replace_bytes(data, len, cap, from, to, part);
}

// Write `text` with `changes` changes into out[0..max].
static inline void
change_text(const char *text, unsigned changes, size_t max, uint64_t *random, char *out)
{
    size_t len = strlen(text);
    memcpy(out, text, len);
    for (unsigned i = 0; i < changes; i++) {
        len = change_bytes((uint8_t *)out, len, max, random);
    }
    out[len] = '\0';
}
