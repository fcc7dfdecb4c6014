// SPDX-License-Identifier: MIT
// earlier_children: the children that a process had before it was attached to. They are not
// recorded, and a leak may be theirs.
//
// A child counts if it is there before the attach and after it. So one that ends meanwhile does
// not, nor one in vfork(2): until it executes a program or ends it is a part of its parent, which
// is not stopped before that. A child that comes after the first look is recorded, or is missing
// here.
// Context: H. Failure: ERR_NO_MEMORY; a process that cannot be read has no children.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

// Before the attach: append the children of a process.
enum err earlier_children_note(pid_t pid, struct u32_vec *out) MUST_USE;

// Afterwards: append "2 children of process 7, which ran before; -p 7,8,9 records them, too" if
// some of the noted children are there and not among the chosen processes. *out_count: how many.
enum err earlier_children_describe(const struct u32_vec *noted,
                                   pid_t pid,
                                   const uint32_t *chosen,
                                   size_t chosen_count,
                                   struct strbuf *out,
                                   size_t *out_count) MUST_USE;
