// SPDX-License-Identifier: MIT
#include "target/unwind/environment/stack_bounds.h"
#include "base/page.h"

#include "base/sys.h"
#include "thread_way.h"

// The largest distance below known bounds at which a stack pointer counts as growth. A larger frame
// is learned anew.
#define EXTEND_BYTES_MAX ((uint64_t)1 << 20)

// A thread's static TLS and descriptor are above its first frame; almost nothing is above main's.
#define ROOT_BYTES_MAX ((uint64_t)1 << 20)

// One check is one system call; this limits the cost of one event.
#define LEARN_BYTES_MAX ((uint64_t)256 << 20)

// The initial thread's pthread_self(), 0 if not noted. Written once, before it matters.
static uint64_t g_main_descriptor;

// Check upwards, so that the check meets the end of a foreign stack before it touches anything
// else.
static bool all_readable(uint64_t from, uint64_t to)
{
    for (uint64_t page = from; page < to; page += PAGE_GRAIN) {
        if (!sys_is_readable(page)) {
            return false;
        }
    }
    return true;
}

bool stack_bounds_extend(struct stack_bounds *bounds, uint64_t sp)
{
    if (sp >= bounds->low || bounds->low - sp > EXTEND_BYTES_MAX ||
        !all_readable(grain_start(sp), bounds->low)) {
        return false;
    }
    bounds->low = grain_start(sp);
    return true;
}

void stack_bounds_foresee(struct stack_bounds *bounds)
{
    const uint64_t end = bounds->low > EXTEND_BYTES_MAX ? bounds->low - EXTEND_BYTES_MAX : 0;
    while (bounds->low < bounds->top && bounds->low > end &&
           sys_is_readable(bounds->low - PAGE_GRAIN)) {
        bounds->low -= PAGE_GRAIN;
    }
}

static bool try_top(struct stack_bounds *bounds, uint64_t sp, uint64_t last_sp, uint64_t top)
{
    top &= ~(uint64_t)7;
    if (last_sp < sp || last_sp > top || sp >= top || top - last_sp > ROOT_BYTES_MAX ||
        top - sp > LEARN_BYTES_MAX) {
        return false;
    }
    // Part of it may be known already.
    bool is_known = bounds->top == top && sp < bounds->low;
    if (!all_readable(grain_start(sp), is_known ? bounds->low : top)) {
        return false;
    }
    *bounds = (struct stack_bounds){.low = grain_start(sp), .top = top};
    return true;
}

static bool is_leader(void)
{
    return sys_gettid() == sys_getpid();
}

void stack_bounds_note_main_thread(void)
{
    if (is_leader() && g_main_descriptor == 0) {
        g_main_descriptor = thread_way_descriptor();
    }
}

// Whether the calling thread's descriptor is at the top of its stack. If the initial thread's was
// not noted, no thread group leader's is trusted: a coroutine's stack may be right below it.
static bool descriptor_is_top(void)
{
    uint64_t main_descriptor = g_main_descriptor;
    bool is_main = main_descriptor != 0 ? thread_way_descriptor() == main_descriptor : is_leader();
    return !is_main;
}

bool stack_bounds_learn(struct stack_bounds *bounds, uint64_t sp, uint64_t last_sp)
{
    const uint64_t main_top = thread_way_main_stack_top();
    if (main_top != 0 && try_top(bounds, sp, last_sp, main_top)) {
        return true;
    }
    return descriptor_is_top() && try_top(bounds, sp, last_sp, thread_way_descriptor());
}
