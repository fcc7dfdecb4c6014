// SPDX-License-Identifier: MIT
// mapping_hooks: the exported functions by which a program maps memory itself.
//
// A hook only calls the real function, records the event, and returns the result. libc's own
// mappings (areas of malloc, stacks of threads, libraries) come from calls inside libc and bypass
// these hooks, as raw system calls do: the recorder finds them in /proc. Mappings are not heap
// events; they are recorded apart and never counted with blocks.
//
// Order. Each change has a number from the process's counter: a mapping gets it after the call, an
// unmapping before it. So of two changes of one address the later one has the higher number,
// whichever threads made them and in whatever order their lanes are read (process.h,
// mapping_map.h).
//
// Compiled with frame pointers: unwind_caller_regs() reads them. Context: T, any caller.
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/process/process.h"
#include "target/preload/real/real_mappings.h"
#include "target/preload/record/record_mapping.h"

// The value of libc's MAP_FAILED, and sbrk's failure too.
#define FAILED ((void *)-1)

// Own prototypes, as in hooks.h: mremap's last argument is optional, and is passed on unseen.
#define X(name, result, parameters, arguments, answer) EXPORT result name parameters;
MAPPING_FUNCTIONS(X)
#undef X

// Record for the hook's caller. A macro, because the caller's registers are found from the hook's
// own frame.
#define RECORD(change)                                           \
    do {                                                         \
        const struct mapping_change change_ = change;            \
        const struct unwind_regs caller_ = unwind_caller_regs(); \
        record_mapping(&caller_, &change_);                      \
    } while (0)

EXPORT void *mmap(void *address, size_t size, int prot, int flags, int fd, off_t offset)
{
    void *mapped = g_real_mappings.mmap(address, size, prot, flags, fd, offset);
    if (mapped != FAILED) {
        RECORD(mapping_of_mmap((uint64_t)mapped, size, (uint64_t)flags));
    }
    return mapped;
}

EXPORT void *mmap64(void *address, size_t size, int prot, int flags, int fd, off_t offset)
{
    void *mapped = g_real_mappings.mmap64(address, size, prot, flags, fd, offset);
    if (mapped != FAILED) {
        RECORD(mapping_of_mmap((uint64_t)mapped, size, (uint64_t)flags));
    }
    return mapped;
}

EXPORT int munmap(void *address, size_t size)
{
    const uint64_t number = process_next_mapping();
    const int result = g_real_mappings.munmap(address, size);
    if (result == 0) {
        RECORD(mapping_of_munmap((uint64_t)address, size, number));
    }
    return result;
}

EXPORT void *mremap(void *old, size_t old_size, size_t size, int flags, void *address)
{
    const uint64_t number = process_next_mapping();
    void *mapped = g_real_mappings.mremap(old, old_size, size, flags, address);
    if (mapped != FAILED) {
        RECORD(mapping_of_mremap((uint64_t)mapped, size, (uint64_t)flags, (uint64_t)old, old_size,
                                 number));
    }
    return mapped;
}

// malloc's own moves of the break are not seen.
EXPORT void *sbrk(intptr_t increment)
{
    const uint64_t number = process_next_mapping();
    void *before = g_real_mappings.sbrk(increment);
    if (before != FAILED) {
        RECORD(mapping_of_break((uint64_t)before, (uint64_t)before + (uint64_t)increment, number));
    }
    return before;
}

EXPORT int brk(void *end)
{
    const uint64_t number = process_next_mapping();
    void *before = g_real_mappings.sbrk(0);
    const int result = g_real_mappings.brk(end);
    if (result == 0 && before != FAILED) {
        RECORD(mapping_of_break((uint64_t)before, (uint64_t)end, number));
    }
    return result;
}
