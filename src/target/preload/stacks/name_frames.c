// SPDX-License-Identifier: MIT
#include "target/preload/stacks/name_frames.h"

#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"

enum {
    KINDS = 2, // the first entries: for names that found no room
    TEXT_WORDS = 8,
};

// A text is written once, or several times with the same words.
struct name_text {
    uint64_t words[TEXT_WORDS];
};
_Static_assert(sizeof("[event ") + NAME_BYTES_MAX + 1 <= sizeof(struct name_text), "it fits");

static _Atomic uint64_t g_keys[NAME_FRAMES_MAX]; // 0: free
static _Atomic uint8_t g_is_written[NAME_FRAMES_MAX];
static struct name_text g_texts[NAME_FRAMES_MAX];

static const char *const g_prefixes[KINDS] = {[NAME_POOL] = "[pool ", [NAME_EVENT] = "[event "};

static uint64_t key_of(enum name_kind kind, const char *name, size_t len)
{
    uint64_t key = hash_mix((uint64_t)kind + 1);
    for (size_t i = 0; i < len; i++) {
        key = (key ^ (uint8_t)name[i]) * 0x100000001b3ULL; // FNV-1a
    }
    key = hash_mix(key);
    return key != 0 ? key : 1;
}

static void write_text(uint32_t index, enum name_kind kind, const char *name, size_t len)
{
    char text[sizeof(struct name_text)] = {0};
    const size_t prefix_len = strlen(g_prefixes[kind]);
    memcpy(text, g_prefixes[kind], prefix_len);
    memcpy(text + prefix_len, name, len);
    text[prefix_len + len] = ']';
    for (size_t i = 0; i < TEXT_WORDS; i++) {
        uint64_t word;
        memcpy(&word, text + i * sizeof(word), sizeof(word));
        __atomic_store_n(&g_texts[index].words[i], word, __ATOMIC_RELAXED);
    }
    // Release: a thread that acquires it may read the text.
    atomic_store_explicit(&g_is_written[index], 1, memory_order_release);
}

// Return the entry of a key, claimed if it is new; the shared entry of the kind if there is no
// room.
static uint32_t find_or_claim(uint64_t key, enum name_kind kind)
{
    for (uint32_t i = 0; i < NAME_FRAMES_MAX - KINDS; i++) {
        const uint32_t index = KINDS + (uint32_t)((key + i) % (NAME_FRAMES_MAX - KINDS));
        uint64_t found = 0;
        // Relaxed: the key guards no other data.
        if (atomic_load_explicit(&g_keys[index], memory_order_relaxed) == key ||
            atomic_compare_exchange_strong_explicit(&g_keys[index], &found, key,
                                                    memory_order_relaxed, memory_order_relaxed) ||
            found == key) {
            return index;
        }
    }
    return kind;
}

uint64_t name_frame_pc(enum name_kind kind, const char *name)
{
    const size_t len = strnlen(name, NAME_BYTES_MAX);
    const uint32_t index = find_or_claim(key_of(kind, name, len), kind);
    if (atomic_load_explicit(&g_is_written[index], memory_order_acquire) == 0) {
        if (index < KINDS) {
            write_text(index, kind, "...", 3);
        } else {
            write_text(index, kind, name, len);
        }
    }
    return NAME_FRAME_BASE + (uint64_t)index * NAME_FRAME_STEP + NAME_FRAME_STEP / 2;
}

bool name_frame_module(uint64_t pc, struct unwind_module *out)
{
    const uint64_t index = (pc - NAME_FRAME_BASE) / NAME_FRAME_STEP;
    if (pc < NAME_FRAME_BASE || index >= NAME_FRAMES_MAX) {
        return false;
    }
    const uint64_t start = NAME_FRAME_BASE + index * NAME_FRAME_STEP;
    *out = (struct unwind_module){.start = start,
                                  .end = start + NAME_FRAME_STEP,
                                  .bias = start,
                                  .path = (const char *)(const void *)g_texts[index].words};
    return true;
}
