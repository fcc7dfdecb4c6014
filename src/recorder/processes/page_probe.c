// SPDX-License-Identifier: MIT
#include "recorder/processes/page_probe.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/containers/vec.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/os/target_file.h"
#include "host/text/strbuf.h"

#define MAPS_BYTES_MAX ((size_t)256 << 20)

enum {
    STACK_BYTES = 65536,
};

struct page {
    uint64_t start;
    uint64_t end; // of its mapping
};
DEFINE_VEC(page_vec, struct page);

// proc(5): "start-end perms offset major:minor inode   path".
static enum err list_pages(char *maps, struct page_vec *out)
{
    uint64_t previous = 0;
    char *rest = NULL;
    for (char *line = strtok_r(maps, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        struct page page;
        unsigned major;
        uint64_t inode;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%*x %" SCNu64, &page.start, &page.end,
                   &major, &inode) == 4 &&
            major == 0 && inode != 0 && inode != previous) {
            TRY(page_vec_push(out, page));
            previous = inode;
        }
    }
    return ERR_OK;
}

// Close all other descriptors: what waits for the end of the recorder must not wait for the child.
static void keep_open(int descriptor)
{
    const unsigned number = (unsigned)descriptor;
    if ((number > 0 && syscall(SYS_close_range, 0, number - 1, 0) != 0) ||
        syscall(SYS_close_range, number + 1, UINT32_MAX, 0) != 0) {
        for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) { // before Linux 5.9
            (void)close(i);                                   // as above
        }
    }
}

struct touching {
    int pid;
    int memory;
    const struct page_vec *pages;
};

// In the child: no memory is taken, and nothing is left behind.
static int touch(void *context)
{
    const struct touching *touching = context;
    uint8_t byte;
    keep_open(touching->memory);
    for (size_t i = 0; i < touching->pages->len; i++) {
        const struct page *page = touching->pages->items + i;
        int fd = -1;
        // The answer counts, not the byte.
        (void)!pread(touching->memory, &byte, 1, (off_t)page->start);
        if (target_file_open_mapped(touching->pid, page->start, page->end, &fd, NULL) == ERR_OK) {
            (void)!pread(fd, &byte, 1, 0); // as above
            (void)close(fd);               // was only read
        }
    }
    return 0;
}

// As vfork(2) does, but with a stack of its own: the child uses the thread-local storage of this
// thread, which waits for its end.
static enum err run_child(struct touching *touching)
{
    uint8_t *stack = malloc(STACK_BYTES); // aligned to 16 bytes, as a stack is
    if (stack == NULL) {
        return ERR_NO_MEMORY;
    }
    const pid_t child =
        clone(touch, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, touching);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    free(stack);
    return ERR_OK;
}

enum err page_probe_touch(int pid)
{
    CLEANUP(strbuf_release) struct strbuf maps = {0};
    CLEANUP(page_vec_release) struct page_vec pages = {0};
    const int living = proc_file_living(pid);
    if (!proc_file_read(living, "maps", MAPS_BYTES_MAX, &maps) || maps.len == 0) {
        return ERR_OK;
    }
    TRY(list_pages(maps.data, &pages));
    if (pages.len == 0) {
        return ERR_OK;
    }
    CLEANUP(fd_closep) int memory = proc_file_open(living, "mem");
    return memory < 0
               ? ERR_OK
               : run_child(&(struct touching){.pid = living, .memory = memory, .pages = &pages});
}
