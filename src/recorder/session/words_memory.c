// SPDX-License-Identifier: MIT
#include "recorder/session/words_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "base/page.h"
#include "host/memory/page_size.h"

enum {
    INTERVAL_NS = 8000000,
    SHARE = 32, // of the time, at most
    STAT_BYTES = 512,
};

// Return the bytes of a lane's pages.
static uint64_t bytes_of_lane(const struct session *session, uint32_t lane)
{
    unsigned char pages[LANE_STRIDE / PAGE_GRAIN];
    const uint64_t step = page_bytes();
    uint64_t bytes = 0;
    if (mincore(session_lane(session->memory, lane), LANE_STRIDE, pages) == 0) {
        for (uint64_t i = 0; i < LANE_STRIDE / step; i++) {
            bytes += (pages[i] & 1) != 0 ? step : 0;
        }
    }
    return bytes;
}

static uint64_t bytes_of_lanes(const struct session *session)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < SESSION_MAX_LANES / 64; i++) {
        // Relaxed: an estimate. A lane that is recycled meanwhile has no pages any more.
        uint64_t used =
            atomic_load_explicit(&session->header->lane_bitmap[i], memory_order_relaxed);
        for (; used != 0; used &= used - 1) {
            bytes += bytes_of_lane(session, i * 64 + (uint32_t)__builtin_ctzll(used));
        }
    }
    return bytes;
}

uint64_t words_memory_bytes(struct words_memory *memory,
                            const struct session *session,
                            uint64_t from_bytes,
                            uint64_t now_ns)
{
    if (now_ns < memory->next_ns) {
        return memory->bytes;
    }
    const uint64_t began_ns = clock_thread_cpu_ns();
    struct stat file;
    if (fstat(session->memfd, &file) != 0) {
        return memory->bytes;
    }
    const uint64_t all_bytes = (uint64_t)file.st_blocks * STAT_BYTES;
    memory->lanes_bytes = all_bytes < from_bytes ? 0 : bytes_of_lanes(session);
    memory->bytes = excess_u64(all_bytes, memory->lanes_bytes);
    // Of the processor's time: on a busy machine, where a reading may be interrupted for long, the
    // next one must not be as much later.
    memory->next_ns =
        now_ns + max_u64(INTERVAL_NS, SHARE * excess_u64(clock_thread_cpu_ns(), began_ns));
    return memory->bytes;
}
