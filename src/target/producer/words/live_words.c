// SPDX-License-Identifier: MIT
#include "target/producer/words/live_words.h"

void words_end_stale(const struct words_at *at,
                     _Atomic uint64_t *word,
                     uint64_t seen,
                     uint64_t address,
                     uint32_t grain_bits,
                     struct words_ended *ended)
{
    const struct word_block block = words_block_of(at, seen, address, grain_bits);
    // Release: the size was read before. Acquire: if another thread was faster, it has read it too.
    if (atomic_compare_exchange_strong_explicit(word, &seen, 0, memory_order_acq_rel,
                                                memory_order_acquire) &&
        block.row != 0 && ended->count < WORDS_ENDED_MAX) {
        ended->blocks[ended->count++] = block;
    }
}

_Atomic uint64_t *words_place_used(const struct words_at *at,
                                   const struct word_block *block,
                                   bool is_tiny,
                                   uint64_t seen,
                                   struct words_ended *ended)
{
    // Relaxed: behind the acquire in words_tiny_below.
    if (is_tiny && atomic_load_explicit(&at->page->lacks_tiny, memory_order_relaxed) != 0) {
        words_end_small(at, block->address, ended);
        return NULL;
    }
    // The word was read once: from here on another thread may store the marker, which must not be
    // removed.
    if (seen != WORD_MARKER) {
        if (seen != 0) {
            words_end_stale(at, at->fine, seen, block->address, WORDS_FINE_BITS, ended);
        }
        if (!is_tiny) {
            return at->fine;
        }
        if (block->row != 0) {
            word_store(at->fine, WORD_MARKER);
        }
    }
    words_end_own(at, at->tiny, block->address, WORDS_TINY_BITS, ended);
    return at->tiny;
}

void words_end_small(const struct words_at *at, uint64_t address, struct words_ended *ended)
{
    const _Atomic uint8_t *has = &at->page->has_fine;
    if (words_has(has) && word_load(at->fine) == WORD_MARKER) {
        words_end_other(at, has, at->tiny, address, WORDS_TINY_BITS, ended);
    } else {
        words_end_other(at, has, at->fine, address, WORDS_FINE_BITS, ended);
    }
}

// Settle a word in one table.
static bool settle_in(_Atomic uint64_t *word,
                      const struct word_block *block,
                      uint32_t before,
                      uint32_t grain_bits)
{
    uint64_t seen = word_load(word);
    return word_row(seen) == before && word_is_at(seen, block->address, grain_bits) &&
           atomic_compare_exchange_strong_explicit(word, &seen, block_word(block, grain_bits),
                                                   memory_order_relaxed, memory_order_relaxed);
}

bool words_settle(const struct process_words *words,
                  const struct word_block *block,
                  uint32_t before)
{
    struct words_region *region = process_words_find(words, block->address);
    if (region == NULL) {
        return false;
    }
    const struct words_at at = words_at(region, block->address);
    if (block->size_bytes >= 1u << WORDS_COARSE_BITS) {
        return words_has(&at.page->has_coarse) &&
               settle_in(at.coarse, block, before, WORDS_COARSE_BITS);
    }
    if (block->size_bytes >= 1u << WORDS_MIDDLE_BITS) {
        return words_has(&at.page->has_middle) &&
               settle_in(at.middle, block, before, WORDS_MIDDLE_BITS);
    }
    if (!words_has(&at.page->has_fine)) {
        return false;
    }
    return word_load(at.fine) == WORD_MARKER ? settle_in(at.tiny, block, before, WORDS_TINY_BITS)
                                             : settle_in(at.fine, block, before, WORDS_FINE_BITS);
}

static bool has_room_in(const _Atomic uint8_t *has,
                        const _Atomic uint64_t *word,
                        uint64_t address,
                        uint32_t grain_bits)
{
    const uint64_t seen = words_has(has) ? word_load(word) : 0;
    return seen == 0 || word_is_at(seen, address, grain_bits);
}

bool words_have_room(struct process_words *words, uint64_t address, uint64_t size_bytes)
{
    struct words_region *region = process_words_find(words, address);
    region = region != NULL ? region : process_words_map(words, address);
    if (region == NULL) {
        return false;
    }
    const struct words_at at = words_at(region, address);
    const struct words_page *page = at.page;
    if (size_bytes >= 1u << WORDS_COARSE_BITS) {
        return has_room_in(&page->has_coarse, at.coarse, address, WORDS_COARSE_BITS);
    }
    return size_bytes >= 1u << WORDS_MIDDLE_BITS
               ? has_room_in(&page->has_middle, at.middle, address, WORDS_MIDDLE_BITS)
               : size_bytes < words_tiny_below(words, address) ||
                     (words_has(&page->has_fine) && word_load(at.fine) == WORD_MARKER) ||
                     has_room_in(&page->has_fine, at.fine, address, WORDS_FINE_BITS);
}
