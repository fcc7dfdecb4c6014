// SPDX-License-Identifier: MIT
// python_versions: tells the version of CPython by what it exports, where it has no Py_Version.
//
// Py_Version came with 3.11. Before that each version brought functions of its own.
//
// Context: T and R; constant data.
#pragma once

#include <stdint.h>

// In place of a version: before 3.7, where no variable leads to the threads.
#define PYTHON_VERSION_OLDER 1u

// Oldest first. A version exports those of the versions before it, too: the last one in turn tells.
static const struct {
    const char *function;
    uint32_t version; // major << 8 | minor
} python_versions[] = {{"Py_InitializeEx", PYTHON_VERSION_OLDER},
                       {"PyOS_AfterFork_Child", 0x0307},
                       {"Py_RunMain", 0x0308},
                       {"PyModule_AddType", 0x0309},
                       {"PyIter_Send", 0x030a}};
