// SPDX-License-Identifier: MIT
// process_texts: describes an image when it joins, by TEXT records on its first lane.
//
// The texts are the executable, the command line (its first PROCESS_TEXT_BYTES_MAX bytes), the
// working directory, the allocator and libc. A forked child sends none: it equals its parent, and a
// sandbox may forbid it to open files. Context: T, from the constructor, which is not inside a
// hook. errno is kept. Failure: texts that the kernel does not provide are omitted.
#pragma once

#define PROCESS_TEXT_BYTES_MAX (64u << 10)

void process_texts_send(void);
