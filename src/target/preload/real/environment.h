// SPDX-License-Identifier: MIT
// environment: removes the recorder's variables from the program's environment, and prepares the
// environment of a program that is executed.
//
// It does not use getenv, setenv or putenv: these allocate, lock, or are replaced by the program.
// Owns: a copy of our two variables, made when the process joins, since the program may change its
// own. Context: T; environment_remember at the process's start, environment_strip there and when
// the program confines itself, the rest at each exec, async-signal-safe. Failure: none.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "session/session_env.h"

// False in the short time before libc has its environment.
bool environment_is_there(void);

// Return the value of CAIRN_SESSION, borrowed from the environment; NULL if there is none.
const char *environment_session(void);

// Remove CAIRN_SESSION and our own entry of LD_PRELOAD, so that programs started from here run
// without the library. Other entries of LD_PRELOAD stay; an empty LD_PRELOAD is removed.
void environment_strip(void);

// Remember CAIRN_SESSION and our own entry of LD_PRELOAD.
void environment_remember(void);

// The variables of an environment that matter here, borrowed from it; NULL where one is missing.
struct environment_scan {
    const char *path;    // value of PATH
    const char *session; // value of CAIRN_SESSION
    const char *preload; // value of LD_PRELOAD, if it is not empty
    const char *ours;    // our entry there
    // Valgrind's launcher made it for its tool, which simulates the program; and
    // CAIRN_INSIDE_VALGRIND, by which the bench counts our own instructions there, is not set.
    bool is_of_valgrind;
    bool lists_libraries; // LD_TRACE_LOADED_OBJECTS: the loader prints a list and runs nothing
    size_t ours_bytes;
    size_t count; // of variables
};
struct environment_scan environment_scan(char *const *variables);

#define ENVIRONMENT_SLOTS 200u
#define ENVIRONMENT_BYTES 512u
#define ENVIRONMENT_SESSION_BYTES \
    (sizeof(SESSION_ENV_NAME "=") + SESSION_ENV_BYTES_MAX + SESSION_SOCKET_NAME_BYTES_MAX)

// An environment for an exec. `variables` borrows from the one that it was made from.
struct made_environment {
    char *const *variables;
    void *mapped; // NULL where the arrays below are large enough
    size_t mapped_bytes;
    char *slots[ENVIRONMENT_SLOTS];
    char preload[ENVIRONMENT_BYTES];
    char session[ENVIRONMENT_SESSION_BYTES];
};

// Whether a value of CAIRN_SESSION names the remembered session.
bool environment_names_ours(const char *session);

// Make the environment from `variables`: unchanged, with the remembered variables put (back) in, or
// without CAIRN_SESSION and our entry of LD_PRELOAD. If memory is lacking, or nothing is
// remembered: unchanged, and false.
void environment_as_is(struct made_environment *made, char *const *variables);
bool environment_with_us(struct made_environment *made, char *const *variables, const char *door);
bool environment_without_us(struct made_environment *made, char *const *variables);
void environment_release(struct made_environment *made);
