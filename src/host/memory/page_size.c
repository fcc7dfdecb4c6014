// SPDX-License-Identifier: MIT
#include "host/memory/page_size.h"

#include <unistd.h>

uint32_t g_page_bits;

__attribute__((constructor)) static void ask_page_size(void)
{
    g_page_bits = (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE)); // cannot fail
}
