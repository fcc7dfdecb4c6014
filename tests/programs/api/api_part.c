// SPDX-License-Identifier: MIT
// api_part: a library with an allocator that reports: one block of 77 bytes stays, one of 33 is
// freed.
#include <cairn.h>

static char memory[200];

int part_work(void)
{
    cairn_report_alloc(memory, 77);
    cairn_report_alloc(memory + 100, 33);
    cairn_report_free(memory + 100);
    return cairn_is_recording();
}
