// SPDX-License-Identifier: MIT
// asks_within: asks for its statistics in the middle of a realloc, as a signal handler may, while
// several threads record. It needs libhandover_allocator.so. Prints whether there was an answer in
// the realloc, and whether there was one after it.
#include <cairn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "handover.h"

static int g_within = -1;

static int is_answered(void)
{
    struct cairn_stats stats;
    return cairn_stats(CAIRN_PROCESS, &stats);
}

void handover_moved(void)
{
    g_within = is_answered();
}

static void *allocate(void *unused)
{
    free(malloc(100));
    return unused;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        return 1;
    }
    free(realloc(malloc(HANDOVER_BYTES), 6000));
    printf("%d %d\n", g_within, is_answered());
    return 0;
}
