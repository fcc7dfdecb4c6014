// SPDX-License-Identifier: MIT
// Exports what CPython exports, in a version that cairn does not read, and allocates once.
// TRUTH: allocations=1 bytes=1000 leaked=1000
#include <stdint.h>
#include <stdlib.h>

// NOLINTBEGIN(readability-identifier-naming): CPython's names
extern uint64_t _PyRuntime[1024];
uint64_t _PyRuntime[1024];
#ifdef IS_OLDER
void Py_InitializeEx(void);
void PyOS_AfterFork_Child(void);
void Py_RunMain(void);
void PyModule_AddType(void);
void Py_InitializeEx(void)
{
}
void PyOS_AfterFork_Child(void)
{
}
void Py_RunMain(void)
{
}
void PyModule_AddType(void)
{
}
#else
extern const unsigned long Py_Version;
const unsigned long Py_Version = 0x036301f0;
#endif
// NOLINTEND(readability-identifier-naming)

static void *volatile g_block;

int main(void)
{
    g_block = malloc(1000);
    return 0;
}
