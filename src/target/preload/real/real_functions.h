// SPDX-License-Identifier: MIT
// real_functions: the next definitions of the functions that we hook, in the loader's search order.
//
// How: each pointer begins at a stub that looks all of them up (definitions.h) and calls the real
// function; so the hooks never test the pointers. The constructor looks them up before the program
// runs; only code that allocates, or maps memory, earlier than that meets a stub. A process looks
// them up before it joins a session, so a recorded process knows its real functions, and whether
// its malloc is ours.
//
// operator new and delete (see operators.c) are looked up once, and only if the process has a C++
// runtime at start.
//
// Context: T, anywhere: the look-up takes no lock, calls no other code and may happen twice.
// Failure: a function that libc does not have keeps its stub, which refuses as that function
// refuses.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "target/preload/real/hooked_functions.h"

// How operator new and delete reach the heap.
enum operators_kind {
    OPERATORS_FORWARD = 0, // to the next definition, which calls malloc and free: tail calls
    OPERATORS_RECORD = 1,  // the allocator brings its own, which do not call malloc: record here
    OPERATORS_REPLACE = 2, // no next definition was found: malloc and free
};

struct real_functions {
#define X(name, result, parameters, arguments, answer) result(*name) parameters;
    ALLOCATOR_FUNCTIONS(X)
#undef X
    void (*free)(void *block);
    // Of the allocator whose malloc comes before ours, if there is one: what libc's reallocarray
    // calls, where ours stands in for it. It may call our realloc in turn. Else NULL.
    void *(*realloc_before_ours)(void *block, size_t size);
    void *(*dlopen)(const char *file, int mode);
    void *(*dlmopen)(long namespace, const char *file, int mode);
    int (*dlclose)(void *handle);
    // NULL where there is none.
#define X(name, parameters, arguments, alignment, throws) void *(*name)parameters;
    NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) void(*name) parameters;
    DELETE_OPERATORS(X)
#undef X
    enum operators_kind operators;
    // The plain operators that all modules call are ours, and the next ones a C++ runtime's own,
    // which only call malloc and free, whose hooks are ours too.
    bool operators_are_plain;
};

// Hidden in the declaration too: then code accesses it directly. -fvisibility=hidden only is for
// definitions.
extern struct real_functions g_real __attribute__((visibility("hidden")));

// Look everything up, unless that was done before.
void real_functions_resolve(void);

// Whether the program's malloc is ours.
bool real_functions_are_hooked(void);

// Whether the executable or an earlier preload defines the program's malloc. If it is libc's, our
// library came late, by a dlopen.
bool real_functions_are_bypassed(void);
