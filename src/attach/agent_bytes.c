// SPDX-License-Identifier: MIT
// agent_bytes: see agent_bytes.h. CMake says which file it is.
#include "attach/agent_bytes.h"

#include <stddef.h>
#include <stdint.h>

__asm__(".section .rodata\n"
        ".balign 16\n"
        ".hidden cairn_agent_bytes\n"
        ".globl cairn_agent_bytes\n"
        "cairn_agent_bytes:\n"
        ".incbin \"" CAIRN_AGENT_FILE "\"\n"
        ".hidden cairn_agent_end\n"
        ".globl cairn_agent_end\n"
        "cairn_agent_end:\n"
        ".byte 0\n"
        ".previous\n");

extern const uint8_t cairn_agent_bytes[];
extern const uint8_t cairn_agent_end[];

struct bytes agent_bytes(void)
{
    return (struct bytes){cairn_agent_bytes, (size_t)(cairn_agent_end - cairn_agent_bytes)};
}
