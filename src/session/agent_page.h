// SPDX-License-Identifier: MIT
// agent_page: what the recorder tells the agent that it has put into a running process.
//
// The agent's image has one such page, its symbol `agent_page`. The recorder writes it through
// /proc/PID/mem, and maps two more pieces of zeroed memory for each attach:
//
//   attachment     thread slots    of the agent; zero means free
//                  patches         of the recorder: where the original functions continue
//                  module lists    the recorder fills the first one, and the agent the other one
//                                  when the loader has changed something
//   process page   MADV_WIPEONFORK, so that a forked child learns that it is one
//   session        all of its file: header and slots; lanes and block words without access
//
// Order: everything, then `enabled` (release), then the patches in the code. At a detach the code
// is restored and `enabled` becomes 0. Threads may still be inside hooks, so all memory stays
// mapped, except lanes that were never accessible (attach/old_session.h). A later attach has fresh
// memory, so no state of the old one is mistaken for its own.
//
// R writes all fields except those marked T. The agent trusts the recorder; the recorder trusts
// nothing that it reads back. Context: T and H; no code.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/page.h"
#include "session/agent_hooks.h"
#include "session/thread_pass.h"

#define AGENT_MAGIC              0x746e656761ULL // "agent", little endian
#define AGENT_VERSION            9u
#define AGENT_THREADS            4096u // power of two
#define AGENT_PATCHES_MAX        4096u
#define AGENT_MODULES_MAX        2048u
#define AGENT_PATHS_BYTES        (256u << 10)
#define AGENT_PAGE_SYMBOL        "agent_page"
#define AGENT_PROCESS_PAGE_BYTES PAGE_GRAIN // at least: the kernel gives whole pages
#define AGENT_SCRATCH_WORDS      16u

// Processors make a load wait for an earlier store to the same place of another page. So what each
// hook reads is where hooks store nothing into a page of a lane or of the session.
#define AGENT_FIRST_OFFSET 0xe00u
#define AGENT_HOT_OFFSET   0xf00u

// What a thread has in the agent, found by its thread pointer.
struct agent_thread {
    _Atomic uint64_t thread_pointer; // T; 0: free
    uint32_t tid_word;               // T: the word at tid_offset, when the thread took the slot
    uint32_t thread_id;              // T
    uint64_t outer_call;     // T: the frame of the hook whose original function runs; 0: none
    void *state;             // T: its struct thread_state
    struct thread_pass pass; // T
    uint64_t outer_mapping;  // T: likewise of a function that maps memory
};
_Static_assert(sizeof(struct agent_thread) == 64, "a cache line");

struct agent_patch {
    uint64_t original; // does what the function did before it was patched
    uint64_t nothrow;  // likewise, of a throwing operator's form that returns NULL; 0: none
};

// A module of the process, for the unwinder and for names.
struct agent_module {
    uint64_t start; // of its mapping
    uint64_t end;   // exclusive
    uint64_t bias;
    uint64_t eh_frame_hdr; // 0: none
    uint64_t headers;      // address of its program headers; 0: none
    uint32_t header_count;
    uint32_t path;         // offset in `paths`
    uint32_t flags;        // enum agent_module_flags
    uint32_t tables_bytes; // of its unwind tables at eh_frame_hdr; 0: they are in the module
};

enum agent_module_flags {
    AGENT_MODULE_STAYS = 1 << 0, // is never unloaded: executable, loader, libc, vDSO, agent
    // What such a library maps itself is not the program's.
    AGENT_MODULE_IS_LIBC = 1 << 1,
    AGENT_MODULE_ALLOCATES = 1 << 2, // has another allocator
};

struct agent_module_list {
    uint32_t count;
    uint32_t reserved;
    struct agent_module modules[AGENT_MODULES_MAX]; // sorted by address
};

struct agent_attachment {
    uint64_t unused[AGENT_FIRST_OFFSET / 8];
    // T: the thread that was the first to need a slot has one at a constant address. Its thread
    // pointer is apart from the slot, because other threads read it. 0: none yet.
    _Atomic uint64_t first_pointer;
    uint64_t reserved[7];
    struct agent_thread first;
    struct agent_thread threads[AGENT_THREADS];
    struct agent_patch patches[AGENT_PATCHES_MAX];
    // R fills lists[0]; T adds 1 to list_count when it has filled the other list.
    struct agent_module_list lists[2];
    _Atomic uint32_t list_count; // lists[list_count % 2] is current
    uint32_t paths_bytes;
    char paths[AGENT_PATHS_BYTES]; // each ended by a zero byte; the first is empty: the executable
};

// Addresses of an interpreter of Python and of the libc that it uses; 0: unknown.
struct agent_python {
    uint64_t runtime;      // _PyRuntime
    uint64_t version;      // Py_Version
    uint64_t older;        // no address: the version without Py_Version (python_versions.h)
    uint64_t get_specific; // pthread_getspecific
};

struct agent_page {
    uint64_t magic;         // of the image
    uint32_t version;       // of the image
    uint32_t pid;           // of the process, in its own pid namespace; others are forked from it
    uint32_t process_flags; // of that process: enum process_flags (layout.h)
    uint32_t load_count;    // T, under the loader's lock: how often it has found new modules
    // R: what its system calls in the target need in memory.
    uint64_t scratch[AGENT_SCRATCH_WORDS];
    // Of the image: where the stubs of each kind jump to, relocated.
    void (*hooks[AGENT_HOOK_COUNT])(void);
    // Likewise, of the stubs of functions that change all registers. NULL: of those too in `hooks`.
    void (*abi_hooks[AGENT_HOOK_COUNT])(void);
    // Address of the session's block words, mapped without access; 0: they are not, or (T) not any
    // more.
    uint64_t words;
    uint64_t unused[AGENT_HOT_OFFSET / 8 - AGENT_SCRATCH_WORDS - 2 * AGENT_HOOK_COUNT - 4];
    uint64_t attachment;        // address of a struct agent_attachment
    uint64_t process_page;      // address of a zeroed page that is wiped in a forked child
    uint64_t session;           // address of the whole session, mapped without access to its lanes
    uint64_t main_stack_top;    // the first stack pointer of the process
    uint64_t loader_list;       // address of the loader's struct r_debug; 0: a static executable
    struct agent_python python; // zeros: the process has none, or its frames are not wanted
    // R, release: 0: every hook only calls its original function.
    _Atomic uint32_t enabled;
    // T: where libc keeps a thread's id, from its thread pointer; 0: not found yet.
    _Atomic int32_t tid_offset;
    // R: smaller blocks of the process have tiny words (target/producer/words). It rises before the
    // first hook of another allocator.
    _Atomic uint32_t tiny_below_bytes;
};
_Static_assert(sizeof(struct agent_page) <= PAGE_GRAIN, "never on two pages");
_Static_assert(offsetof(struct agent_page, attachment) == AGENT_HOT_OFFSET, "apart from the rest");
_Static_assert(sizeof(void (*)(void)) == sizeof(uint64_t), "an address");
