// SPDX-License-Identifier: MIT
//
// hindering WAY ARGUMENT...: a process that hinders each that attaches to it, or reads it later. It
// allocates a block now and then until its standard input ends. It has no TRUTH, because it is not
// to be recorded, or not completely. WAY:
//
//   unmap  another process with the same memory unmaps all that is mapped later
//   fuse   has mapped, as code, a page of a file system of its own that does not answer; writes
//          "no" and ends if it may not mount one, else "yes"
//   half   the same, but the first page of two answers: the head of an ELF file whose program
//          headers are in the second one
//   maps   has 60,000 mappings
//   room   may map no more memory
//   tmp PROGRAM ARGUMENT...  has a /tmp that does not answer, and becomes PROGRAM; writes "no" as
//          above, else nothing
//   stop   is stopped by a signal
//   cut FILE  has mapped the beginning of FILE, as code, and cuts and restores its end without end
//   threads COUNT  has COUNT threads that sleep, or as many as it may; writes their number instead
#include <elf.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAPPINGS_MAX = 4000,
    OTHER_USER = 65534,
    PAGE_BYTES = 4096,
    MANY_MAPPINGS = 60000,
    STACK_BYTES = 16384,
    CUT_BYTES = 256 << 10,
    ROOM_BYTES = 64 << 20,
};

struct mapping {
    uintptr_t start;
    uintptr_t end;
};

static struct mapping before[MAPPINGS_MAX];
static struct mapping now[MAPPINGS_MAX];
static char stack[1 << 20];

static int read_mappings(struct mapping *out)
{
    static char text[1 << 20];
    int count = 0;
    size_t len = 0;
    const int fd = open("/proc/self/maps", O_RDONLY);
    for (ssize_t got; (got = read(fd, text + len, sizeof(text) - 1 - len)) > 0;) {
        len += (size_t)got;
    }
    (void)close(fd);
    text[len] = '\0';
    for (char *line = text; line != NULL && *line != '\0' && count < MAPPINGS_MAX;) {
        if (sscanf(line, "%lx-%lx", &out[count].start, &out[count].end) == 2) {
            count++;
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return count;
}

static int is_new(struct mapping mapping, int count)
{
    for (int i = 0; i < count; i++) {
        if (before[i].start <= mapping.start && mapping.start < before[i].end) {
            return 0;
        }
    }
    return 1;
}

static int unmap_without_end(void *unused)
{
    (void)unused;
    const int count = read_mappings(before);
    while (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) {
        const int found = read_mappings(now);
        for (int i = 0; i < found; i++) {
            if (is_new(now[i], count)) {
                (void)munmap((void *)now[i].start, now[i].end - now[i].start);
            }
        }
    }
    return 1;
}

static void reply(int fuse, uint64_t unique, int problem, const void *data, size_t len)
{
    char bytes[2 * PAGE_BYTES];
    const struct fuse_out_header header = {
        .len = (uint32_t)(sizeof(header) + len), .error = problem, .unique = unique};
    memcpy(bytes, &header, sizeof(header));
    if (len > 0) {
        memcpy(bytes + sizeof(header), data, len);
    }
    (void)!write(fuse, bytes, header.len);
}

static void reply_head(int fuse, uint64_t unique)
{
    uint8_t page[PAGE_BYTES] = {0};
    Elf64_Ehdr head;
    const int own = open("/proc/self/exe", O_RDONLY);
    (void)!read(own, &head, sizeof(head));
    (void)close(own);
    head.e_phoff = PAGE_BYTES;
    memcpy(page, &head, sizeof(head));
    reply(fuse, unique, 0, page, sizeof(page));
}

enum answers {
    ANSWERS_NO_PAGE,
    ANSWERS_FIRST_PAGE,
    ANSWERS_NOTHING,
};

// A folder with one file; reading it is never answered, or only for its first page. Or the folder
// itself does not answer.
static void serve(int fuse, enum answers answers)
{
    static char request[1 << 20];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(fuse, request, sizeof(request)) > 0) {
        const struct fuse_in_header *header = (const void *)request;
        const struct fuse_attr root = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 1};
        const struct fuse_attr file = {
            .ino = 2, .size = 2 * PAGE_BYTES, .mode = S_IFREG | 0755, .nlink = 1};
        const struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = PAGE_BYTES};
        const struct fuse_attr_out attr = {.attr = header->nodeid == 1 ? root : file,
                                           .attr_valid = 1};
        const struct fuse_entry_out entry = {
            .nodeid = 2, .attr = file, .entry_valid = 100, .attr_valid = 100};
        const struct fuse_open_out opened = {.fh = 1};
        if (answers == ANSWERS_NOTHING && header->opcode != FUSE_INIT) {
            continue;
        }
        switch (header->opcode) {
        case FUSE_INIT:
            reply(fuse, header->unique, 0, &init, sizeof(init));
            break;
        case FUSE_GETATTR:
            reply(fuse, header->unique, 0, &attr, sizeof(attr));
            break;
        case FUSE_LOOKUP:
            reply(fuse, header->unique, 0, &entry, sizeof(entry));
            break;
        case FUSE_OPEN:
            reply(fuse, header->unique, 0, &opened, sizeof(opened));
            break;
        case FUSE_FLUSH:
        case FUSE_RELEASE:
            reply(fuse, header->unique, 0, NULL, 0);
            break;
        case FUSE_READ:
            if (answers == ANSWERS_FIRST_PAGE &&
                ((const struct fuse_read_in *)(header + 1))->offset == 0) {
                reply_head(fuse, header->unique);
            }
            break;
        case FUSE_INTERRUPT:
        case FUSE_FORGET:
            break;
        default:
            reply(fuse, header->unique, -38, NULL, 0); // ENOSYS
        }
    }
    _exit(0);
}

// As the set-user-id program fusermount mounts it for any user.
static int map_page_without_answer(enum answers answers)
{
    char folder[] = "/tmp/hinderingXXXXXX";
    char text[128];
    const int fuse = open("/dev/fuse", O_RDWR);
    (void)snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", fuse,
                   OTHER_USER, OTHER_USER);
    if (fuse < 0 || geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mkdtemp(folder) == NULL ||
        chown(folder, OTHER_USER, OTHER_USER) != 0 ||
        mount("hindering", folder, "fuse", MS_NOSUID | MS_NODEV, text) != 0 ||
        setresgid(OTHER_USER, OTHER_USER, OTHER_USER) != 0 ||
        setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0) {
        return 0;
    }
    if (fork() == 0) {
        serve(fuse, answers);
    }
    (void)close(fuse);
    (void)snprintf(text, sizeof(text), "%s/lib.so", folder);
    const int file = open(text, O_RDONLY);
    return mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0) != MAP_FAILED;
}

static int become_program(char **arguments)
{
    char text[128];
    const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    (void)snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (fuse < 0 || geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("hindering", "/tmp", "fuse", MS_NOSUID | MS_NODEV, text) != 0) {
        return 0;
    }
    if (fork() == 0) {
        serve(fuse, ANSWERS_NOTHING);
    }
    (void)execv(arguments[0], arguments);
    return 0;
}

static int map_often(void)
{
    int can = 1;
    for (int i = 0; i < MANY_MAPPINGS && can; i++) { // neighbours that differ stay apart
        can = mmap(NULL, PAGE_BYTES, i % 2 != 0 ? PROT_READ : PROT_READ | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    }
    return can;
}

static int cut_without_end(void *file)
{
    const int fd = *(const int *)file;
    const off_t bytes = lseek(fd, 0, SEEK_END);
    while (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) {
        (void)!ftruncate(fd, CUT_BYTES);
        (void)!ftruncate(fd, bytes);
    }
    return 1;
}

static int map_cut_file(const char *path)
{
    static int fd;
    fd = open(path, O_RDWR);
    return mmap(NULL, CUT_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED &&
           clone(cut_without_end, stack + sizeof(stack), SIGCHLD, &fd) > 0;
}

static void *sleep_without_end(void *unused)
{
    for (;;) {
        (void)pause();
    }
    return unused;
}

static int start_threads(int count)
{
    int started = 0;
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (pthread_t thread; started < count; started++) {
        if (pthread_create(&thread, &attributes, sleep_without_end, NULL) != 0) {
            break;
        }
    }
    return started;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int can = 1;
    free(malloc(100));
    if (strcmp(way, "unmap") == 0) {
        can = clone(unmap_without_end, stack + sizeof(stack),
                    CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, NULL) > 0;
    } else if (strcmp(way, "maps") == 0) {
        can = map_often();
    } else if (strcmp(way, "room") == 0) {
        can = setrlimit(RLIMIT_AS, &(struct rlimit){ROOM_BYTES, ROOM_BYTES}) == 0;
    } else if (strcmp(way, "cut") == 0) {
        can = map_cut_file(argc > 2 ? argv[2] : "");
    } else if (strcmp(way, "threads") == 0) {
        const int started = start_threads(argc > 2 ? atoi(argv[2]) : 0);
        (void)dprintf(STDOUT_FILENO, "%d ", started);
    } else if (strcmp(way, "stop") == 0) {
        (void)!write(STDOUT_FILENO, "yes\n", 4);
        (void)raise(SIGSTOP);
    } else if (strcmp(way, "tmp") == 0 && argc > 2) {
        can = become_program(argv + 2);
    } else {
        can = map_page_without_answer(strcmp(way, "half") == 0 ? ANSWERS_FIRST_PAGE
                                                               : ANSWERS_NO_PAGE);
    }
    (void)!write(STDOUT_FILENO, can ? "yes\n" : "no\n", can ? 4 : 3);
    for (struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
         can && poll(&input, 1, 10) == 0;) {
        free(malloc(100));
    }
    return 0;
}
