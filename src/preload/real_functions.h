// SPDX-License-Identifier: MIT
// real_functions: the next definitions of what we hook, in the order in which the loader would have
// found them without us.
//
// How: each pointer begins at a stub that looks all of them up (dlsym, RTLD_NEXT) and goes on to
// the real one; so the hooks never test whether the pointers are there. The constructor looks them
// up before the program runs; a stub is only met by those who allocate earlier than that. While the
// look-up runs, the stubs serve from the bootstrap heap, for dlsym itself may allocate.
//
// operator new and delete (see operators.c) are looked up once, and only if the process has a C++
// runtime at start: a failed dlsym leaves an error for the program's next dlerror() to find, which
// is why nothing is looked up that may be missing, and why dlerror() is called after the one look
// that may fail.
//
// Context: T. Single threaded in practice, idempotent in any case. Failure: a function that libc
// does not have keeps its stub, which refuses as that function refuses.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "preload/hooked_functions.h"

// How operator new and delete reach the heap.
enum operators_kind {
    OPERATORS_FORWARD = 0, // to the next definition, which calls malloc and free: tail calls
    OPERATORS_RECORD = 1,  // the allocator brings its own, which do not: record here
    OPERATORS_REPLACE = 2, // there is no next definition in sight: malloc and free
};

struct real_functions {
#define X(name, result, parameters, arguments, answer) result(*name) parameters;
    ALLOCATOR_FUNCTIONS(X)
#undef X
    void (*free)(void *block);
    void *(*dlopen)(const char *file, int mode);
    int (*dlclose)(void *handle);
    // NULL where there is none.
#define X(name, parameters, arguments, alignment, throws) void *(*name)parameters;
    NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) void(*name) parameters;
    DELETE_OPERATORS(X)
#undef X
    enum operators_kind operators;
};

extern struct real_functions g_real;

// Looks everything up if that was not done yet.
void real_functions_resolve(void);

// True from the first look-up's beginning to its end: who allocates now is the loader.
bool real_functions_are_resolving(void);

// True if the program's malloc is ours: no executable or earlier preload defines its own.
bool real_functions_are_hooked(void);
