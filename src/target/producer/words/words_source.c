// SPDX-License-Identifier: MIT
#include "target/producer/words/words_source.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/page.h"
#include "base/sys.h"

static long map_opened(const struct words_source *source, uint64_t offset, size_t len_bytes)
{
    const long fd = source->open(source->context);
    if (sys_failed(fd)) {
        return fd;
    }
    const long at =
        sys_mmap(NULL, len_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, (int)fd, (int64_t)offset);
    (void)sys_close((int)fd); // the mapping keeps the memory
    return at;
}

// An old size of 0 leaves the head where it is, and maps its file a second time, as far as wanted
// (mremap(2)). What is in front of the part goes again.
static long map_inherited(const struct words_source *source, uint64_t offset, size_t len_bytes)
{
    // A copy of a locked page would be locked, and so populated. The head needs no lock.
    (void)SYS_CALL(SYS_munlock, (long)source->head, PAGE_GRAIN);
    const long copy =
        SYS_CALL(SYS_mremap, (long)source->head, 0, (long)(offset + len_bytes), MREMAP_MAYMOVE);
    if (sys_failed(copy)) {
        return copy;
    }
    const long at = copy + (long)offset;
    (void)sys_munmap((void *)copy, offset); // refused, it stays reserved
    const long result = sys_mprotect((void *)at, len_bytes, PROT_NONE);
    if (sys_failed(result)) {
        (void)sys_munmap((void *)at, len_bytes); // likewise
        return result;
    }
    return at;
}

void *words_source_map(const struct words_source *source, uint64_t offset, size_t len_bytes)
{
    if (words_source_mapped(source) != NULL) {
        return words_source_mapped(source) + offset;
    }
    long at = map_opened(source, source->base + offset, len_bytes);
    if (sys_failed(at) && source->head != NULL) {
        at = map_inherited(source, source->base + offset, len_bytes);
    }
    if (sys_failed(at)) {
        return NULL;
    }
    (void)sys_madvise((void *)at, len_bytes, MADV_DONTDUMP); // only spares core files its pages
    return (void *)at;
}

void words_source_unmap(const struct words_source *source, void *part, size_t len_bytes)
{
    if (words_source_mapped(source) == NULL) {
        (void)sys_munmap(part, len_bytes); // cannot fail for our own mapping
    }
}

bool words_source_open_part(void *part, size_t len_bytes)
{
    return !sys_failed(sys_mprotect(part, len_bytes, PROT_READ | PROT_WRITE));
}
