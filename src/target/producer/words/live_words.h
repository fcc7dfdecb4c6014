// SPDX-License-Identifier: MIT
// live_words: pairs allocations with frees by the words of their blocks
// (session/books/block_words.h).
//
//   malloc:   the allocator's malloc, then words_put
//   free:     words_take, then the allocator's free
//   realloc:  words_take, the allocator's realloc, then words_put of the new block; or of what was
//             taken, if the call failed and the block stayed
//
// Order. A program cannot free a block before its malloc returned, and an allocator cannot give an
// address away again before its free was called. A put comes before the malloc returns, a take
// before the free is called. So whatever threads access the word of a live block do so one after
// the other, and plain loads and stores pair each free with its block, exactly: there is no lock
// and no owner. (A program that hands a block over by a relaxed store has a race by the letter. The
// fence after a put makes the word precede the block even then.)
//
// Stale words. A block that is freed past the hooks leaves its word behind. A put ends, that is
// removes and returns, the word in its own place and the words of all tables that start at exactly
// its address: a free would take such a word instead of the new one. Two threads may find one
// stale word at the same time, one at its own grain and one at its own address. So stale words are
// removed by compare and swap, and only the thread that removed it returns the block. What no put
// finds is an old block whose start is inside a new one; the recorder sees that they overlap.
//
// A block that is not recorded needs a put as well, with row 0: it ends what is stale, so that its
// free finds nothing.
//
// Tiny blocks. With allocators whose small blocks can be less than 32 bytes apart, blocks below a
// size have words of 8 bytes of address, and WORD_MARKER stands in their grains of 32. A marker
// stays, and all later blocks of such a grain have their words beneath it. It is the same for all,
// so two threads may store it at once.
//
// Context: T, any thread, and its signal handlers in the middle of these functions: a handler's
// block has another word than the one that was interrupted. No lock, no system call but for a new
// region. Failure: no region, or a table that was given back; the block has an entry then
// (live_entries.h).
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/books/block_words.h"
#include "target/producer/words/process_words.h"

#define WORDS_ENDED_MAX 5u // one of each table, and an entry

// The blocks whose words were stale.
struct words_ended {
    uint32_t count;
    struct word_block blocks[WORDS_ENDED_MAX];
};

// The words of an address.
struct words_at {
    struct words_region *region;
    struct words_page *page;
    _Atomic uint64_t *coarse;
    _Atomic uint64_t *middle;
    _Atomic uint64_t *fine;
    _Atomic uint64_t *tiny;
};

// Remove the word `seen` of a stale block and add the block to `ended`, unless another thread
// does. The word is in a table of that grain, and `address` in its grain.
void words_end_stale(const struct words_at *at,
                     _Atomic uint64_t *word,
                     uint64_t seen,
                     uint64_t address,
                     uint32_t grain_bits,
                     struct words_ended *ended);

// Do words_place_small where the fine word is `seen`, or the block is to have a word of 8 bytes.
// NULL: it can have none.
_Atomic uint64_t *words_place_used(const struct words_at *at,
                                   const struct word_block *block,
                                   bool is_tiny,
                                   uint64_t seen,
                                   struct words_ended *ended);

// End what starts at the address of a block of the middle or the coarse table and has a word in the
// fine or the tiny one.
void words_end_small(const struct words_at *at, uint64_t address, struct words_ended *ended);

ALWAYS_INLINE struct words_at words_at(struct words_region *region, uint64_t address)
{
    const uint64_t place = address % WORDS_REGION_BYTES;
    return (struct words_at){.region = region,
                             .page = region->pages + (place >> WORDS_COARSE_BITS),
                             .coarse = region->coarse + (place >> WORDS_COARSE_BITS),
                             .middle = region->middle + (place >> WORDS_MIDDLE_BITS),
                             .fine = region->fine + (place >> WORDS_FINE_BITS),
                             .tiny = region->tiny + (place >> WORDS_TINY_BITS)};
}

// The program's own allocator may place its blocks anywhere.
ALWAYS_INLINE uint64_t words_tiny_below(const struct process_words *words, uint64_t address)
{
    // It rises before the first block that needs it. Acquire: pairs with region_cut.c.
    const _Atomic uint32_t *below = words->tiny_below;
    return UNLIKELY((address & WIRE_CUSTOM_BLOCK) != 0) ? WORDS_TINY_SMALL
           : LIKELY(below != NULL) ? atomic_load_explicit(below, memory_order_acquire)
                                   : WORDS_TINY_NEVER;
}

// Relaxed: see "Order" above.
ALWAYS_INLINE uint64_t word_load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

ALWAYS_INLINE void word_store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

// Return the place of the size of a large block, beside its coarse word.
ALWAYS_INLINE _Atomic uint64_t *words_large(const struct words_at *at)
{
    return at->region->large + (at->coarse - at->region->coarse);
}

// Relaxed, likewise: a block's own put has set what its take reads.
ALWAYS_INLINE bool words_has(const _Atomic uint8_t *has)
{
    return atomic_load_explicit(has, memory_order_relaxed) == WORDS_NOTE_HAD;
}

// Note that a table has words. false: it has been given back (region_cut.h).
static inline bool words_note_had(_Atomic uint8_t *has)
{
    uint8_t found = WORDS_NOTE_NONE;
    return atomic_compare_exchange_strong_explicit(has, &found, WORDS_NOTE_HAD,
                                                   memory_order_relaxed, memory_order_relaxed) ||
           found == WORDS_NOTE_HAD; // another thread of ours was first
}

// Return whether a put has to do with a table: it stores a word there, or there may be an old one.
ALWAYS_INLINE bool words_enter(_Atomic uint8_t *has, bool is_stored)
{
    return LIKELY(words_has(has)) || (is_stored && words_note_had(has));
}

// Return the block of a word in a table of that grain, in whose grain `address` is.
ALWAYS_INLINE struct word_block
words_block_of(const struct words_at *at, uint64_t seen, uint64_t address, uint32_t grain_bits)
{
    const uint64_t grain = address & ~(((uint64_t)1 << grain_bits) - 1);
    return (struct word_block){.address = grain + word_start(seen, grain_bits),
                               .size_bytes = grain_bits == WORDS_COARSE_BITS
                                                 ? word_load(words_large(at))
                                                 : word_size(seen, grain_bits),
                               .birth_ms = word_birth_ms(seen, grain_bits),
                               .row = word_row(seen)};
}

// End the word of another table than the block's own if it starts at exactly its address.
ALWAYS_INLINE void words_end_other(const struct words_at *at,
                                   const _Atomic uint8_t *has,
                                   _Atomic uint64_t *word,
                                   uint64_t address,
                                   uint32_t grain_bits,
                                   struct words_ended *ended)
{
    const uint64_t seen = words_has(has) ? word_load(word) : 0;
    if (UNLIKELY(seen != 0) && UNLIKELY(word_is_at(seen, address, grain_bits))) {
        words_end_stale(at, word, seen, address, grain_bits, ended);
    }
}

// End whatever word there is in the block's own place.
ALWAYS_INLINE void words_end_own(const struct words_at *at,
                                 _Atomic uint64_t *word,
                                 uint64_t address,
                                 uint32_t grain_bits,
                                 struct words_ended *ended)
{
    const uint64_t seen = word_load(word);
    if (UNLIKELY(seen != 0)) {
        words_end_stale(at, word, seen, address, grain_bits, ended);
    }
}

// Free the place of a block's word in its own table, and return it. NULL: nothing is there, and
// nothing can be stored, or is to be.
ALWAYS_INLINE _Atomic uint64_t *words_place_small(const struct words_at *at,
                                                  const struct word_block *block,
                                                  bool is_tiny,
                                                  struct words_ended *ended)
{
    if (!words_enter(&at->page->has_fine, block->row != 0)) {
        return NULL;
    }
    const uint64_t seen = word_load(at->fine);
    return LIKELY(seen == 0) && LIKELY(!is_tiny)
               ? at->fine
               : words_place_used(at, block, is_tiny, seen, ended);
}

ALWAYS_INLINE _Atomic uint64_t *words_place_middle(const struct words_at *at,
                                                   const struct word_block *block,
                                                   struct words_ended *ended)
{
    if (!words_enter(&at->page->has_middle, block->row != 0)) {
        return NULL;
    }
    words_end_own(at, at->middle, block->address, WORDS_MIDDLE_BITS, ended);
    return at->middle;
}

ALWAYS_INLINE _Atomic uint64_t *words_place_coarse(const struct words_at *at,
                                                   const struct word_block *block,
                                                   struct words_ended *ended)
{
    if (!words_enter(&at->page->has_coarse, block->row != 0)) {
        return NULL;
    }
    words_end_own(at, at->coarse, block->address, WORDS_COARSE_BITS, ended);
    // After the stale word, which needs its own size. Another thread that ends that word has read
    // the size before its compare and swap.
    word_store(words_large(at), block->size_bytes);
    return at->coarse;
}

// After a put: see "Order".
ALWAYS_INLINE void words_fence_put(void)
{
#ifdef __SANITIZE_THREAD__ // knows no other fence; its own order is stronger
    atomic_signal_fence(memory_order_release);
#else
    atomic_thread_fence(memory_order_release);
#endif
}

// Store the word of a new block, after the allocator has returned it; of row 0, none. false: there
// is no region for it, or no table; what is stale has ended.
ALWAYS_INLINE bool
words_put(struct process_words *words, const struct word_block *block, struct words_ended *ended)
{
    const uint64_t address = block->address;
    struct words_region *region = process_words_find(words, address);
    ended->count = 0;
    if (UNLIKELY(region == NULL)) {
        region = process_words_map(words, address);
        if (region == NULL) {
            return false;
        }
    }
    const struct words_at at = words_at(region, address);
    _Atomic uint64_t *own;
    uint32_t grain_bits;
    if (LIKELY(block->size_bytes < (1u << WORDS_MIDDLE_BITS))) {
        const bool is_tiny = block->size_bytes < words_tiny_below(words, address);
        words_end_other(&at, &at.page->has_coarse, at.coarse, address, WORDS_COARSE_BITS, ended);
        words_end_other(&at, &at.page->has_middle, at.middle, address, WORDS_MIDDLE_BITS, ended);
        own = words_place_small(&at, block, is_tiny, ended);
        grain_bits = own == at.tiny ? WORDS_TINY_BITS : WORDS_FINE_BITS;
    } else if (block->size_bytes < (1u << WORDS_COARSE_BITS)) {
        words_end_other(&at, &at.page->has_coarse, at.coarse, address, WORDS_COARSE_BITS, ended);
        words_end_small(&at, address, ended);
        own = words_place_middle(&at, block, ended);
        grain_bits = WORDS_MIDDLE_BITS;
    } else {
        words_end_other(&at, &at.page->has_middle, at.middle, address, WORDS_MIDDLE_BITS, ended);
        words_end_small(&at, address, ended);
        own = words_place_coarse(&at, block, ended);
        grain_bits = WORDS_COARSE_BITS;
    }
    if (LIKELY(block->row != 0)) {
        if (UNLIKELY(own == NULL)) {
            return false;
        }
        word_store(own, block_word(block, grain_bits));
    }
    words_fence_put();
    return true;
}

// Take the word if it is of the block at exactly `address`.
ALWAYS_INLINE bool words_take_from(const struct words_at *at,
                                   _Atomic uint64_t *word,
                                   uint64_t address,
                                   uint32_t grain_bits,
                                   struct word_block *out)
{
    const uint64_t seen = word_load(word);
    if (!word_is_at(seen, address, grain_bits)) {
        return false;
    }
    *out = words_block_of(at, seen, address, grain_bits);
    word_store(word, 0);
    return true;
}

// Take the word of a block that is in no coarse or middle table.
ALWAYS_INLINE bool
words_take_small(const struct words_at *at, uint64_t address, struct word_block *out)
{
    if (UNLIKELY(!words_has(&at->page->has_fine))) {
        return false;
    }
    return LIKELY(words_take_from(at, at->fine, address, WORDS_FINE_BITS, out)) ||
           (word_load(at->fine) == WORD_MARKER &&
            words_take_from(at, at->tiny, address, WORDS_TINY_BITS, out));
}

// Whether the word of a new block would take the place of no other block's. A program's own
// allocator may have handles that are closer to each other than its blocks are long.
bool words_have_room(struct process_words *words, uint64_t address, uint64_t size_bytes);

// Give the word of the block a row and a birth, if it is there and has the row `before`.
bool words_settle(const struct process_words *words,
                  const struct word_block *block,
                  uint32_t before);

// Take the word of a block that is about to be freed. false: it has none.
ALWAYS_INLINE bool
words_take(const struct process_words *words, uint64_t address, struct word_block *out)
{
    struct words_region *region = process_words_find(words, address);
    if (UNLIKELY(region == NULL)) {
        return false;
    }
    const struct words_at at = words_at(region, address);
    return (UNLIKELY(words_has(&at.page->has_coarse)) &&
            words_take_from(&at, at.coarse, address, WORDS_COARSE_BITS, out)) ||
           (words_has(&at.page->has_middle) &&
            words_take_from(&at, at.middle, address, WORDS_MIDDLE_BITS, out)) ||
           words_take_small(&at, address, out);
}
