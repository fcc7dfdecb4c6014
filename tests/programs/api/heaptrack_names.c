// SPDX-License-Identifier: MIT
// heaptrack_names: code for heaptrack_api.h that uses cairn.h in its place.
// TRUTH: allocations=3 frees=2 allocated_bytes=60 live_blocks=1 live_bytes=30
#define CAIRN_HEAPTRACK_NAMES
#include <cairn.h>

static char memory[100];

int main(void)
{
    heaptrack_report_alloc(memory, 10);
    heaptrack_report_realloc(memory, 20, memory + 50);
    heaptrack_report_alloc(memory, 30);
    heaptrack_report_free(memory + 50);
    return 0;
}
