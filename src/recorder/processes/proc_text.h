// SPDX-License-Identifier: MIT
// proc_text: single figures in the texts of /proc/PID, as proc(5) describes them.
//
// The texts are the kernel's, but names in them are the program's. Context: H; pure. What is not
// found, or said differently by another kernel, is 0.
#pragma once

#include <stdint.h>

// What follows "`key`:" at the beginning of a line; NULL if no line begins so.
const char *proc_text_value(const char *text, const char *key);

// status, smaps_rollup: the number after "`key`:" at the beginning of a line, in bytes if that line
// counts kB.
uint64_t proc_text_kib(const char *text, const char *key);

// stat: when the process began, in ticks of the kernel.
uint64_t proc_text_start(const char *text);

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
