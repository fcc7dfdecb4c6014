// SPDX-License-Identifier: MIT
// allocator_names: what a function does to the heap, by its name.
//
// The malloc family and jemalloc's *allocx are known with the prefixes in use: malloc, je_malloc,
// _rjem_malloc, mi_malloc, tc_malloc, __libc_malloc, and so on. mimalloc's own functions and the
// operators new and delete are known by their full names. A user can add names:
// `--allocator malloc=my_alloc,free=my_free`. Context: H; any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "session/agent_hooks.h"

struct allocator_form {
    const char *name; // without prefix
    enum agent_hook hook;
    bool is_operator;    // counts only in a module that also defines malloc
    const char *nothrow; // of AGENT_ALLOCATES_OR_THROWS: the form that returns NULL instead
};

// Whether any known name begins like that one. Cheap: most functions of a program are left out by
// this.
bool allocator_name_may_be_known(const char *name);

// Return the form of the function `name` of `len` bytes. NULL: it is not an allocator's.
const struct allocator_form *allocator_form_find(const char *name, size_t len);

struct allocator_name {
    enum agent_hook hook;
    char *name; // owned
};
DEFINE_VEC(allocator_name_vec, struct allocator_name);

// Return the allocator that has functions of that name, in lower case; NULL: several have, or none.
const char *allocator_name_owner(const char *name, size_t len);

// Whether a function has that name only in an allocator other than libc's, such as mi_malloc or
// mallocx. A library that replaces malloc does not replace it.
bool allocator_name_is_private(const char *name, size_t len);

// Return the sanitizer whose run-time defines the function, NULL if none does. It ends the program
// if other memory is where its shadow belongs. Those without a shadow do not count.
const char *allocator_name_sanitizer(const char *name);

void allocator_names_release(struct allocator_name_vec *names);

// Parse the value of --allocator and append its names. The words before `=` are functions of the
// malloc family and *allocx, whose arguments the user's function has; names of C++ functions are
// mangled. ERR_INVALID with a sentence; ERR_NO_MEMORY.
enum err allocator_names_parse(const char *text,
                               struct allocator_name_vec *names,
                               struct err_info *info) MUST_USE;
