// SPDX-License-Identifier: MIT
// standard_streams: descriptors 0 to 2 belong to the standard streams, also those that are closed.
//
// A file that cairn opens gets the lowest free number. With standard error closed that may be 2,
// and the next message would go into that file, or over the memory shared with the program.
// A closed stream is therefore opened on /dev/null the wrong way around, as other tools do, so that
// its use still fails. Recorded programs do not inherit it: for them the stream stays closed.
// Context: H, first thing in main, before other threads.
#pragma once

// Occupy the closed ones of descriptors 0, 1 and 2. Without /dev/null they stay closed.
void standard_streams_occupy(void);
