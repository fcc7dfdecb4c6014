// SPDX-License-Identifier: MIT
// standard_streams: descriptors 0 to 2 belong to the standard streams, also those that are closed,
// and each failed write to a file is an error.
//
// A file that cairn opens gets the lowest free number. With standard error closed that may be 2,
// and the next message would go into that file, or over the memory shared with the program.
// A closed stream is therefore opened on /dev/null the wrong way around, as other tools do, so that
// its use still fails. Recorded programs do not inherit it: for them the stream stays closed.
//
// A limit on the size of files (ulimit -f) kills a process that writes beyond it, by SIGXFSZ and
// without a sentence. With a handler write fails instead, with EFBIG. An ignored signal would stay
// ignored in the programs that cairn starts; a handler does not outlive their exec.
// Context: H, first things in main, before other threads.
#pragma once

// Occupy the closed ones of descriptors 0, 1 and 2. Without /dev/null they stay closed.
void standard_streams_occupy(void);

// Let writing beyond the limit fail instead of killing the process. An ignored signal stays so.
void standard_streams_outlive_limit(void);
