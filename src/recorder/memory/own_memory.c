// SPDX-License-Identifier: MIT
#include "recorder/memory/own_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include "host/text/proc_text.h"

int own_memory_open(void)
{
    return open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

uint64_t own_memory_bytes(int fd)
{
    char text[128];
    const ssize_t got = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    if (got <= 0) {
        return 0;
    }
    text[got] = '\0';
    const struct proc_pages pages = proc_text_pages(text);
    return pages.shared <= pages.resident
               ? (pages.resident - pages.shared) * (uint64_t)sysconf(_SC_PAGESIZE)
               : 0;
}
