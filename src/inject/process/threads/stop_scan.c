// SPDX-License-Identifier: MIT
#include "inject/process/threads/stop_scan.h"

#include <errno.h>

#include "base/minmax.h"
#include "base/search.h"
#include "inject/process/threads/thread_regs.h"

#define SCAN_BYTES_MAX  UINT64_C(0x80000)
#define SCAN_BYTES_STEP ((size_t)16 << 10)

bool stop_scan_is_in(const struct address_range *ranges, size_t count, uint64_t addr)
{
    const size_t first = FIRST_WHERE(at, count, ranges[at].end > addr);
    return first < count && ranges[first].start <= addr;
}

bool stop_scan_stack(const struct target_process *target,
                     const struct user_regs_struct *regs,
                     const struct address_range *ranges,
                     size_t count)
{
    if (count == 0) {
        return false;
    }
    const uint64_t sp = thread_regs_sp(regs);
    const struct target_mapping *stack = target_process_mapping_at(target, sp);
    const uint64_t lowest = ranges[0].start;
    const uint64_t span = ranges[count - 1].end - lowest;
    uint64_t at = sp & ~UINT64_C(7);
    // A stack that is newer than the list of mappings is read until it ends.
    const uint64_t end = min_u64(stack != NULL ? stack->end : UINT64_MAX, at + SCAN_BYTES_MAX);
    while (at < end) {
        uint64_t words[SCAN_BYTES_STEP / sizeof(uint64_t)];
        const ssize_t got = target->calls->read_at(target->mem_fd, words,
                                                   min_u64(sizeof(words), end - at), (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < (ssize_t)sizeof(*words)) {
            return false;
        }
        const size_t words_count = (size_t)got / sizeof(*words);
        for (size_t i = 0; i < words_count; i++) {
            if (words[i] - lowest < span && stop_scan_is_in(ranges, count, words[i])) {
                return true;
            }
        }
        at += words_count * sizeof(*words);
    }
    return false;
}
