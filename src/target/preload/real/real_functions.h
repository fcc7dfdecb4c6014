// SPDX-License-Identifier: MIT
// real_functions: the next definitions of what we hook, in the order in which the loader would have
// found them without us.
//
// How: each pointer begins at a stub that looks all of them up (definitions.h) and goes on to the
// real one; so the hooks never test whether the pointers are there. The constructor looks them up
// before the program runs; a stub is only met by those who allocate, or map memory, earlier than
// that. Whoever joins a session looks them up first: a process that is recorded knows its real
// functions, and whether its malloc is ours.
//
// operator new and delete (see operators.c) are looked up once, and only if the process has a C++
// runtime at start.
//
// Context: T, anywhere: the look-up takes no lock, calls nobody and may be done twice. Failure: a
// function that libc does not have keeps its stub, which refuses as that function refuses.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "target/preload/real/hooked_functions.h"

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

// True if the program's malloc is ours.
bool real_functions_are_hooked(void);

// True if it is one that the executable or an earlier preload defines. If it is libc's, we came
// late, by a dlopen.
bool real_functions_are_bypassed(void);
