// SPDX-License-Identifier: MIT
// growth: buffers that grow by realloc, as strings, vectors and output buffers do.
//
// `buffers` buffers are alive at a time and grow in turn, so most growths move the block. Half of
// them grow by a half, half by a fixed 256 bytes; a buffer that has reached `bytes` starts anew. An
// operation is one realloc.

#include "workload.h"

#include <stdlib.h>

#define BUFFERS_MAX 4096

struct buffer {
    char *data;
    uint64_t bytes;
};

static void grow(struct buffer *buffer, uint32_t index, uint64_t limit)
{
    uint64_t bytes = buffer->bytes + (index % 2 ? 256 : buffer->bytes / 2 + 16);
    if (bytes > limit) {
        free(buffer->data);
        *buffer = (struct buffer){0};
        bytes = 16;
    }
    char *data = realloc(buffer->data, bytes);
    if (!data) {
        abort();
    }
    data[bytes - 1] = 1;
    *buffer = (struct buffer){data, bytes};
}

int main(int argc, char **argv)
{
    uint64_t reallocs = 5000000;
    uint64_t buffers = 64;
    uint64_t limit = 65536;
    const struct workload_param params[] = {
        {"reallocs", &reallocs, 1, UINT64_MAX / 2, "growths in all"},
        {"buffers", &buffers, 1, BUFFERS_MAX, "buffers alive at a time"},
        {"bytes", &limit, 16, (uint64_t)1 << 40, "size at which a buffer starts anew"},
        {0},
    };
    workload_args(argc, argv, params);
    static struct buffer all[BUFFERS_MAX];
    uint64_t begin = workload_now_ns();
    for (uint64_t i = 0; i < reallocs; i++) {
        uint32_t index = (uint32_t)(i % buffers);
        grow(&all[index], index, limit);
    }
    for (uint64_t i = 0; i < buffers; i++) {
        free(all[i].data);
    }
    uint64_t loop_ns = workload_now_ns() - begin;
    const struct workload_figure figures[] = {{"buffers", buffers}, {"bytes", limit}, {NULL, 0}};
    workload_report("growth", reallocs, loop_ns, figures);
    return 0;
}
