// SPDX-License-Identifier: MIT
// named: named pools, and events with weights. Each pool name has one entry, whichever stack uses
// it; the table has less room than 300 pools.
// TRUTH: allocations=308 frees=3 allocated_bytes=400 live_blocks=305 live_bytes=350
// TRUTH: temporary=3
#include <cairn.h>
#include <stdio.h>

static char memory[4096];

__attribute__((noinline)) static void use_pool(const char *pool, char *block, size_t bytes)
{
    cairn_pool_alloc(pool, block, bytes);
}

__attribute__((noinline)) static void send_bytes(uint64_t bytes)
{
    cairn_event("bytes sent", bytes);
}

int main(void)
{
    char copy[] = "nodes";
    use_pool("nodes", memory, 10);
    use_pool(copy, memory + 16, 20);
    use_pool("edges", memory + 48, 30);
    cairn_report_free(memory + 48);
    use_pool("a name that is longer than the forty-seven bytes kept", memory + 96, 5);
    cairn_pool_realloc("edges", NULL, memory + 112, 6);
    cairn_pool_realloc("edges", memory + 112, memory + 128, 14); // 6 bytes existed before
    cairn_pool_realloc("edges", memory + 128, NULL, 0);
    cairn_report_alloc(memory + 160, 7); // without a pool
    cairn_pool_alloc(NULL, memory + 176, 8);
    for (int i = 0; i < 300; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "pool%d", i);
        use_pool(name, memory + 1000 + i, 1);
    }
    for (int i = 0; i < 1000; i++) {
        send_bytes((uint64_t)i);
    }
    cairn_event("bytes sent", 5); // from another stack
    cairn_event("started", 0);
    return 0;
}
