// SPDX-License-Identifier: MIT
// TRUTH: allocations=8 frees=7 allocated_bytes=4824 temporary=1 peak_bytes=4708
// TRUTH(large_pages): allocated_bytes=8920 peak_bytes=8804
// TRUTH: live_bytes=16 live_blocks=1
//
// Functions of libc that allocate for their caller. Sizes are those of glibc 2.36: a stream takes
// 472 bytes and a buffer of st_blksize, a page, but at most 8192; getline begins with 120, asprintf
// works in 100 and then moves a short result to a block of its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "a line\n", 7) != 7) {
        return 1;
    }
    close(ends[1]);

    char *whole = strdup("hello");           // 6
    char *part = strndup("hello, world", 5); // 6
    char *made = NULL;
    if (asprintf(&made, "%s-%d", part, 7) != 7) { // 100, then 8, and the 100 freed
        return 2;
    }
    FILE *stream = fdopen(ends[0], "r"); // 472
    char *line = NULL;
    size_t line_bytes = 0;
    if (getline(&line, &line_bytes, stream) != 7) { // 120 for the line, and the buffer
        return 3;
    }
    fclose(stream); // frees the buffer, which was temporary, and the 472
    free(line);
    free(part);
    char *list = calloc(16, 1);
    free(whole);
    free(made);
    return list == NULL;
}
