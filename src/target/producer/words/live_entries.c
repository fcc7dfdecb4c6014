// SPDX-License-Identifier: MIT
#include "target/producer/words/live_entries.h"

#include <stddef.h>

// Relaxed, as words (live_words.h): who may access a block's entry does so after its put.
static uint64_t load(const _Atomic uint64_t *of)
{
    return atomic_load_explicit(of, memory_order_relaxed);
}

static struct block_entry *find_in(struct entry_bucket *bucket, uint64_t address)
{
    for (uint32_t i = 0; i < ENTRY_BUCKET; i++) {
        if (load(&bucket->entries[i].address) == address) {
            return bucket->entries + i;
        }
    }
    return NULL;
}

// Return the entry of an address. NULL: it has none.
static struct block_entry *find(struct process_words *words, uint64_t address)
{
    for (uint32_t chunk = 0; chunk < ENTRY_CHUNKS; chunk++) {
        struct entry_bucket *buckets = process_words_chunk_find(words, chunk);
        if (buckets == NULL) {
            return NULL;
        }
        struct block_entry *entry = find_in(buckets + entry_first_bucket(address, chunk), address);
        entry =
            entry != NULL ? entry : find_in(buckets + entry_second_bucket(address, chunk), address);
        if (entry != NULL) {
            return entry;
        }
    }
    return NULL;
}

// Claim a free entry of a bucket. NULL: there is none.
static struct block_entry *claim_in(struct entry_bucket *bucket, uint64_t address)
{
    for (uint32_t i = 0; i < ENTRY_BUCKET; i++) {
        struct block_entry *entry = bucket->entries + i;
        uint64_t none = 0;
        // Acquire: pairs with the release in take, after the last store of the block before.
        if (load(&entry->address) == 0 &&
            atomic_compare_exchange_strong_explicit(&entry->address, &none, address,
                                                    memory_order_acquire, memory_order_relaxed)) {
            return entry;
        }
    }
    return NULL;
}

static struct block_entry *claim(struct process_words *words, uint64_t address)
{
    for (uint32_t chunk = 0; chunk < ENTRY_CHUNKS; chunk++) {
        struct entry_bucket *buckets = process_words_chunk(words, chunk);
        if (buckets == NULL) {
            return NULL;
        }
        struct block_entry *entry = claim_in(buckets + entry_first_bucket(address, chunk), address);
        entry = entry != NULL ? entry
                              : claim_in(buckets + entry_second_bucket(address, chunk), address);
        if (entry != NULL) {
            return entry;
        }
    }
    return NULL;
}

bool entries_put(struct process_words *words, const struct word_block *block)
{
    struct block_entry *entry = block->address != 0 ? claim(words, block->address) : NULL;
    if (entry == NULL) {
        return false;
    }
    atomic_store_explicit(&entry->size_bytes, block->size_bytes, memory_order_relaxed);
    // Release: R finds the size of a word.
    atomic_store_explicit(&entry->word, entry_word(block), memory_order_release);
    words_fence_put();
    return true;
}

bool entries_take(struct process_words *words, uint64_t address, struct word_block *out)
{
    struct block_entry *entry = address != 0 ? find(words, address) : NULL;
    const uint64_t word = entry != NULL ? load(&entry->word) : 0;
    if (word_row(word) == 0) {
        return false;
    }
    *out = entry_block(address, word, load(&entry->size_bytes));
    atomic_store_explicit(&entry->word, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->address, 0, memory_order_release); // see claim_in
    return true;
}

void entries_end(struct process_words *words, uint64_t address, struct words_ended *ended)
{
    if (ended->count < WORDS_ENDED_MAX &&
        entries_take(words, address, ended->blocks + ended->count)) {
        ended->count++;
    }
}

bool entries_settle(struct process_words *words, const struct word_block *block, uint32_t before)
{
    struct block_entry *entry = find(words, block->address);
    uint64_t seen = entry != NULL ? load(&entry->word) : 0;
    return entry != NULL && word_row(seen) == before &&
           load(&entry->size_bytes) == block->size_bytes &&
           atomic_compare_exchange_strong_explicit(&entry->word, &seen, entry_word(block),
                                                   memory_order_relaxed, memory_order_relaxed);
}
