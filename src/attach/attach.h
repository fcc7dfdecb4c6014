// SPDX-License-Identifier: MIT
// attach: puts the agent into a running process and connects it with a session.
//
//   attach_open     open the process, find its allocators, map the agent; no function changes yet
//   attach_begin    map the session in the process, tell the agent, patch the allocators
//   attach_late     patch the allocators of modules that were loaded since
//   attach_end      restore the functions, and switch the agent off
//   attach_release  let go of the process, in whatever state it is
//
// What was mapped stays in the process (inject.h). Owns the connection to the process. Context: H,
// one thread. Failure: the process runs on as before, and `info` has a sentence.
#pragma once

#include <stdint.h>

#include "attach/trim.h"
#include "attach/unwind_copy.h"
#include "base/err.h"
#include "inject/allocators/allocator_scan.h"
#include "inject/code/patch_plan.h"
#include "inject/inject.h"
#include "inject/process/threads/fresh_stop.h"
#include "session/agent_page.h"

struct plain_modules;

DEFINE_VEC(inject_near_vec, struct inject_near);

// What attach_open finds in one module.
struct attach_module {
    struct allocator_scan scan;  // owned
    struct target_module module; // a copy; its path is the next field
    struct strbuf path;          // owned; as the process names it
    size_t patch_count;          // its patches in the plan, behind those of the modules before
    struct unwind_copy unwind;   // owned; of a module without an index of its unwind tables
    struct trim_answer answer;   // of attach_open: what its allocator keeps; zeroed: unknown
};
DEFINE_VEC(attach_module_vec, struct attach_module);

// A function that is hooked, or cannot be.
struct attach_hook {
    size_t module;         // offset of its path in hook_texts
    size_t name;           // likewise
    const char *allocator; // static; "": unknown, or it is no allocator's
    const char *reason;    // static; the end of a sentence; "": it is hooked
    bool is_allocators;    // a function of an allocator
};
DEFINE_VEC(attach_hook_vec, struct attach_hook);

struct attach {
    struct inject inject;
    struct agent_python python; // with reads_python: of the modules so far
    // Of attach_open, or of the latest module of attach_late:
    struct attach_module_vec modules; // those with allocators
    struct inject_near_vec nears;     // one for each of them
    struct patch_plan plan;
    uint64_t page_addr;            // of the agent's page
    struct strbuf executable;      // path
    struct strbuf command_line;    // the arguments, each ended by a zero byte
    struct u32_vec threads;        // that a program which runs already has, some of them
    struct strbuf thread_names;    // of these, each ended by a zero byte
    struct strbuf allocator;       // path of the module whose malloc is patched first
    const struct runtime *runtime; // of the first module that has one; NULL: none is known
    // Of the latest attach_open or attach_late:
    struct strbuf
        hidden_in;        // "FILE contains ALLOCATOR", of the first module with such an allocator
    struct strbuf hidden; // sentences about allocators without names, each in a line
    struct strbuf unpatched; // plan.refusals: "NAME of 'PATH' is too short", ...
    size_t unpatched_count;
    struct strbuf unread;         // what could not be read, a name in each line
    struct attach_hook_vec hooks; // valid once the functions are patched
    struct strbuf hook_texts;     // each ended by a zero byte
    size_t hooked_count;          // functions in the process that are patched
    bool is_fresh;
    bool is_patched;
};

struct attach_options {
    const struct allocator_name_vec *names; // the user's functions; NULL: none
    // The calling thread holds the program before its first instruction (fresh_stop.h), from
    // attach_open until after attach_begin.
    bool is_fresh;
    bool is_urgent;      // do not wait for the program's loader
    bool may_lack_names; // it is one of many programs: not each of them has the user's functions
    bool reads_python;   // stacks are to have the frames of Python
    struct plain_modules *plain_modules; // files without allocators, for attach_late
};

// Accepts nothing but an unused `attach`; call attach_release() in either case. Waits until the
// program's loader has mapped its libraries. ERR_NOT_FOUND if there is no such process or it has no
// allocator that cairn knows; with is_urgent ERR_TRUNCATED if it has not loaded everything yet;
// errors of inject.h.
enum err attach_open(struct attach *attach,
                     int pid,
                     const struct attach_options *options,
                     struct err_info *info) MUST_USE;

// `session_fd`: the memory of a running session (session/layout.h). Several processes may share it.
enum err attach_begin(struct attach *attach, int session_fd, struct err_info *info) MUST_USE;

// Find and patch the allocators of modules that the process has loaded since. is_fresh and
// may_lack_names of the options mean nothing. ERR_NOT_FOUND if the process has ended; errors of
// inject.h, then some modules may be patched.
enum err attach_late(struct attach *attach,
                     const struct attach_options *options,
                     struct err_info *info) MUST_USE;

// Do the same in a process that was forked while its parent was attached to. ERR_NOT_FOUND if it
// has no copies of our hooks. Otherwise call attach_release() afterwards; attach_end_copy() ends
// it.
enum err attach_late_copy(struct attach *attach,
                          int pid,
                          const struct attach_options *options,
                          struct err_info *info) MUST_USE;

// Succeeds if the process has ended.
enum err attach_end(struct attach *attach, struct err_info *info) MUST_USE;

// Do the same to a process that was forked while its parent was attached to: it has a copy of the
// changed functions. Does nothing, successfully, to a process that has none.
enum err attach_end_copy(int pid, struct err_info *info) MUST_USE;

void attach_release(struct attach *attach);
