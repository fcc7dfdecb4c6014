// SPDX-License-Identifier: MIT
// probe_work: what probe_program.c allocates, and a recording of it contains. The sizes are those
// of no library, so that a row of the recording is found by its size.
#pragma once

enum {
    PROBE_MAIN_BYTES = 1237, // the first PROBE_MAIN_KEPT blocks are never freed
    PROBE_MAIN_COUNT = 1000,
    PROBE_MAIN_KEPT = 10,
    PROBE_THREAD_BYTES = 1361,
    PROBE_THREAD_COUNT = 500,
    PROBE_CHILD_BYTES = 1489,
    PROBE_CHILD_COUNT = 200,
};
