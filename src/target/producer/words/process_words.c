// SPDX-License-Identifier: MIT
#include "target/producer/words/process_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/page_alloc.h"
#include "base/sys.h"

_Static_assert(sizeof(struct process_words) <= PAGE_BYTES, "one page is wiped");

#define DIRECTORY_BYTES ((size_t)WORDS_PLACES * sizeof(_Atomic(struct words_region *)))

struct process_words *process_words_new(void)
{
    struct process_words *words = page_alloc(PAGE_BYTES);
    if (words != NULL && sys_failed(sys_madvise(words, PAGE_BYTES, MADV_WIPEONFORK))) {
        page_free(words, PAGE_BYTES);
        return NULL;
    }
    return words;
}

// Map a part of the file. NULL if the kernel refuses.
static void *map_part(const struct words_source *source, uint64_t offset, size_t len_bytes)
{
    const long fd = source->open(source->context);
    if (sys_failed(fd)) {
        return NULL;
    }
    const long at =
        sys_mmap(NULL, len_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, (int)fd, (int64_t)offset);
    (void)sys_close((int)fd); // the mapping keeps the memory
    if (sys_failed(at)) {
        return NULL;
    }
    void *part = (void *)at;
    (void)sys_madvise(part, len_bytes, MADV_DONTDUMP); // only spares core files its pages
    if (sys_failed(sys_mprotect(part, len_bytes, PROT_READ | PROT_WRITE))) {
        (void)sys_munmap(part, len_bytes); // cannot fail for a mapping that we made
        return NULL;
    }
    return part;
}

enum err process_words_open(struct process_words *words,
                            const struct words_source *source,
                            uint32_t process,
                            uint32_t tiny_below_bytes)
{
    struct words_file *file = map_part(source, 0, sizeof(*file));
    if (file == NULL) {
        return ERR_NOT_FOUND;
    }
    _Atomic(struct words_region *) *directory =
        file->magic == WORDS_MAGIC ? page_alloc(DIRECTORY_BYTES) : NULL;
    if (directory == NULL) {
        const bool is_words = file->magic == WORDS_MAGIC;
        (void)sys_munmap(file, sizeof(*file)); // as above
        return is_words ? ERR_NO_MEMORY : ERR_UNSUPPORTED;
    }
    words->file = file;
    words->source = *source;
    words->process = process;
    words->tiny_below_bytes = tiny_below_bytes;
    words->directory = directory;
    return ERR_OK;
}

// Claim the next region of the file; false: there are no more.
static bool claim_region(struct words_file *file, uint32_t *number)
{
    uint32_t count = atomic_load_explicit(&file->region_count, memory_order_relaxed);
    do {
        if (count >= WORDS_REGIONS_MAX) {
            return false;
        }
        // Relaxed: a region is zero until its owner writes to it.
    } while (!atomic_compare_exchange_weak_explicit(&file->region_count, &count, count + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    *number = count;
    return true;
}

struct words_region *process_words_map(const struct process_words *words, uint64_t address)
{
    uint32_t number;
    if (words->directory == NULL || !words_have_place(address) ||
        !claim_region(words->file, &number)) {
        return NULL;
    }
    struct words_region *region =
        map_part(&words->source, words_region_offset(number), sizeof(*region));
    if (region == NULL) {
        return NULL;
    }
    const uint32_t place = words_place(address);
    struct words_region *first = NULL;
    if (!atomic_compare_exchange_strong_explicit(words->directory + place, &first, region,
                                                 memory_order_release, memory_order_relaxed)) {
        // Another thread of ours was first, or a handler. The claimed region stays empty.
        (void)sys_munmap(region, sizeof(*region)); // as above
        return first;
    }
    // Release: pairs with the recorder's acquire; only for symmetry, since it reads zeros before.
    atomic_store_explicit(&words->file->regions[number], words_region_note(words->process, place),
                          memory_order_release);
    return region;
}
