// SPDX-License-Identifier: MIT
// proc_text: reads single figures from the texts of /proc/PID, as proc(5) describes them.
//
// The kernel writes the texts, but the program chooses names in them. A figure that is missing, or
// has another form in another kernel, is 0.
// Context: H; pure.
#pragma once

#include <stdint.h>

// Return the text after "`key`:" at the start of a line; NULL if no line starts so.
const char *proc_text_value(const char *text, const char *key);

// status: return the number after "`key`:" at the start of a line.
uint64_t proc_text_number(const char *text, const char *key);

// status: return the hexadecimal number after "`key`:" at the start of a line, such as a set of
// capabilities.
uint64_t proc_text_mask(const char *text, const char *key);

// smaps_rollup, meminfo, status: return the number after "`key`:" at the start of a line, in bytes
// if the line counts kB.
uint64_t proc_text_kib(const char *text, const char *key);

// status: the last number of the line NSpid, the pid in the innermost namespace.
uint32_t proc_text_innermost_pid(const char *text);

// stat: the state of the process or thread: R, S, D, Z, ...; X if it is missing, as of a dead one.
char proc_text_state(const char *text);

// stat: the start of the process in kernel ticks.
uint64_t proc_text_start(const char *text);

// stat: the address of the end of the environment; 0 in the middle of an exec, and without the
// right to read it.
uint64_t proc_text_environment_end(const char *text);

// stat: the first stack pointer of the process.
uint64_t proc_text_stack_top(const char *text);

// stat: a number that names the image which the process has executed, by the places of its code,
// stack and arguments. The process may move these (PR_SET_MM). 0: it may not be read.
uint64_t proc_text_image(const char *text);

// syscall, of a thread: its stack pointer; 0 while it runs.
uint64_t proc_text_stack_pointer(const char *text);

struct proc_faults {
    uint64_t minor;
    uint64_t major;
};

// stat: page faults so far.
struct proc_faults proc_text_faults(const char *text);

struct proc_pages {
    uint64_t resident;
    uint64_t shared; // of those: files and shared memory
};

// statm.
struct proc_pages proc_text_pages(const char *text);

// maps: bytes of the area of brk.
uint64_t proc_text_break(const char *text);
