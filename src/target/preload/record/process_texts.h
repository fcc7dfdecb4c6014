// SPDX-License-Identifier: MIT
// process_texts: what an image says about itself when it joins: TEXT records on its first lane.
//
// Executable, command line (its first PROCESS_TEXT_BYTES_MAX bytes), working directory, allocator,
// libc. A forked child says nothing: it is what its parent is, and may live in a sandbox that lets
// it open no file. Context: T, from the constructor, which is not inside a hook. errno is kept.
// Failure: what the kernel does not tell is left out.
#pragma once

#define PROCESS_TEXT_BYTES_MAX (64u << 10)

void process_texts_send(void);
