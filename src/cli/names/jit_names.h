// SPDX-License-Identifier: MIT
// jit_names: names for code that programs made while they ran (JIT compilers).
//
// The recorder puts code without a file into one module for each process, "[jit PID]". When such a
// module appears, this module inspects the process while it lives: its root directory, its number
// in its own pid namespace, its user, and the jit-PID.dump that it has mapped, if any. JIT
// compilers write until their process ends. So perf-PID.map in that /tmp and the dump are read when
// all processes have ended. Named code then moves to one module, "[jit]", so that code of one name
// is one function in all processes. Unnamed code becomes code without a module.
//
// Hostile input: the recorded user owns the files, and everyone can write to /tmp. perf_map.h has
// the rules. At most JIT_PROCESSES_MAX processes are inspected. Context: H; one thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/tables/stack_table.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/recorder.h"

#define JIT_PROCESSES_MAX 256u

struct jit_process {
    uint32_t module;
    uint32_t pid;     // in the recorder's pid namespace
    uint32_t own_pid; // in its own pid namespace
    uint32_t user;
    int64_t since_s; // older files are ignored: they are of a process that had its pid before
    int tmp;         // owned descriptor of its /tmp, valid after its namespace ends; -1: ours
    int dump;        // owned descriptor; -1: none
};

DEFINE_VEC(jit_process_vec, struct jit_process);

struct jit_names {
    struct jit_process_vec processes;
    size_t seen_modules;
    int64_t since_s; // for a process whose start is unknown
};

void jit_names_init(struct jit_names *names);
void jit_names_release(struct jit_names *names);

// Inspect the processes of modules that were added to `stacks`, by `reader`: a folder of theirs may
// not answer. Code of a process that could not be inspected has no names.
void jit_names_see(struct jit_names *names,
                   const struct stack_table *stacks,
                   const struct aside_reader *reader);

// Give frames of JIT modules their symbols, as recorder_callbacks.name_frames requires. If a file
// of names is too large, append one sentence to `too_large`. Return ERR_NO_MEMORY or ERR_LIMIT.
enum err jit_names_add(const struct jit_names *names,
                       struct recording *recording,
                       struct string_table *strings,
                       struct rec_symbol_vec *symbols,
                       struct strbuf *too_large) MUST_USE;

// Merge all JIT modules into one, or into none if no frame in them has a name. Call it after the
// last name was added. Modules behind them get other numbers.
enum err jit_names_merge(struct recording *recording, struct string_table *strings) MUST_USE;
