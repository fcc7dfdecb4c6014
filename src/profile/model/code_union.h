// SPDX-License-Identifier: MIT
// code_union: the functions of one recording, or of two, under common ids.
//
// Two recordings of one program, or of two builds of it, give the same function different ids,
// addresses and lines. A union identifies a function by its name and its module's file name
// (libc.so for libc.so.6). Executables with different file names are matched by their role in the
// run (program_pairs.h):
//
//   new: 0 main@app   1 load@app          ids[0] = 0 1
//   old: 0 load@app   1 gone@app          ids[1] = 1 2     origins = new 0, new 1, old 1
//
// Functions of the new recording keep their ids. With an old recording, functions of the same name
// share the lowest id, and so do a compiler's clones of one function. All unnamed code of a module
// is one function. Files of other tools may lack a function's module; such a function is matched by
// name if the other side has that name in one module only.
// A function whose name has changed gets one id, too, if its figures tell (renames.h).
// Context: H; read-only once built.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

struct code_origin {
    enum side side;
    uint32_t function; // in that side's code index
};

DEFINE_VEC(code_origin_vec, struct code_origin);

struct code_rename {
    uint32_t from; // id of the old name, which no function has any more
    uint32_t to;   // of the new name
};

DEFINE_VEC(code_rename_vec, struct code_rename);

struct code_union {
    const struct profile *profiles[SIDE_COUNT]; // borrowed; SIDE_OLD may be NULL
    struct u32_vec ids[SIDE_COUNT];             // owned; by function id of the side
    struct code_origin_vec origins;             // owned; by id
    struct flag_vec wrappers;                   // owned; by id: 1 if it is a wrapper in either
    struct code_rename_vec renames;             // owned
};

// Build the union. `old` may be NULL.
enum err code_union_build(const struct profile *new,
                          const struct profile *old,
                          struct code_union *out) MUST_USE;
void code_union_release(struct code_union *code);

// Unite the function `from` of the old recording alone with `to` of the new one alone.
enum err code_union_rename(struct code_union *code, uint32_t from, uint32_t to) MUST_USE;

// The function's whole name, and the path of its module or "". `id` must be below origins.len.
const char *code_union_name(const struct code_union *code, uint32_t id);
const char *code_union_module(const struct code_union *code, uint32_t id);
