// SPDX-License-Identifier: MIT
// jit_names: names for code that programs made while they ran (JIT compilers).
//
// The recorder puts the code of no file into a module of its own for each process, "[jit PID]".
// When such a module appears, its process is looked at while it lives: its root directory, its
// number in its own pid namespace, its user, and the jit-PID.dump that it has mapped, if any. When
// all have ended, perf-PID.map in that /tmp and the dump are read, for JIT compilers write
// until then. Code that has a name belongs to the one module "[jit]" from then on, so that code of
// one name is one function in all processes; the rest becomes code of no module.
//
// Hostile: the files are of those who were recorded, and /tmp is everybody's: perf_map.h has the
// rules. At most JIT_PROCESSES_MAX processes are looked at. Context: H; one thread.
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
    uint32_t pid;     // as we see it
    uint32_t own_pid; // as it sees itself
    uint32_t user;
    int tmp;  // owned descriptor of its /tmp, which outlives its namespace; -1: ours
    int dump; // owned descriptor; -1: none
};

DEFINE_VEC(jit_process_vec, struct jit_process);

struct jit_names {
    struct jit_process_vec processes;
    size_t seen_modules;
    int64_t since_s; // files from before are not ours
};

void jit_names_init(struct jit_names *names);
void jit_names_release(struct jit_names *names);

// Modules may have been added to `stacks`.
void jit_names_see(struct jit_names *names, const struct stack_table *stacks);

// Gives frames of JIT modules their symbols, as recorder_callbacks.name_frames is to do.
// ERR_NO_MEMORY, ERR_LIMIT.
enum err jit_names_add(const struct jit_names *names,
                       struct recording *recording,
                       struct string_table *strings,
                       struct rec_symbol_vec *symbols) MUST_USE;

// After the last name: makes of all JIT modules one, or none if nothing in them is named. Modules
// behind them get other numbers.
enum err jit_names_merge(struct recording *recording, struct string_table *strings) MUST_USE;
