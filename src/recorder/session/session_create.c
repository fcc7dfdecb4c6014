// SPDX-License-Identifier: MIT
#include "recorder/session/session_create.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/proc_file.h"

enum {
    ANCESTORS_MAX = 64, // generations between a joining process and the recorder
    BACKLOG = 64,
};

// Set the size of the session. A limit on the size of files (ulimit -f) applies to it, too,
// although it is mostly holes. The limit is raised for a moment, up to the hard limit. A size
// beyond that would raise SIGXFSZ.
static enum err memory_size(int memfd, uint64_t bytes, struct err_info *info)
{
    struct rlimit own;
    if (getrlimit(RLIMIT_FSIZE, &own) != 0) {
        return err_set_errno(info, errno, "cannot get the limit on file sizes");
    }
    struct rlimit lifted = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &lifted) != 0) {
        lifted = (struct rlimit){.rlim_cur = own.rlim_max, .rlim_max = own.rlim_max};
        (void)setrlimit(RLIMIT_FSIZE, &lifted); // raising up to the hard limit needs no privilege
    }
    if (lifted.rlim_cur < bytes) {
        (void)setrlimit(RLIMIT_FSIZE, &own); // lowering cannot fail
        return err_set(
            info, ERR_LIMIT,
            "the limit on the size of files is too low to record: the memory shared with "
            "the program counts as %u GiB (ulimit -Hf)",
            (unsigned)(bytes >> 30));
    }
    const int failure = ftruncate(memfd, (off_t)bytes) != 0 ? errno : 0;
    (void)setrlimit(RLIMIT_FSIZE, &own);
    return failure == 0 ? ERR_OK : err_set_errno(info, failure, "cannot size the session's memory");
}

// What failed may be a limit that cairn itself has.
static enum err say_unmapped(int failure, struct err_info *info)
{
    struct rlimit own;
    return failure == ENOMEM && getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY
               ? err_set(info, ERR_LIMIT,
                         "the limit on addresses is too low to record: the memory shared with "
                         "the program takes %u GiB of them (ulimit -v)",
                         (unsigned)(SESSION_BYTES >> 30))
               : err_set_errno(info, failure, "cannot map the session's memory");
}

// Map the head of the words behind the lanes.
static enum err words_create(struct session *s, struct err_info *info)
{
    void *words = mmap(NULL, sizeof(*s->words), PROT_READ | PROT_WRITE, MAP_SHARED, s->memfd,
                       (off_t)SESSION_WORDS_OFFSET);
    if (words == MAP_FAILED) {
        return say_unmapped(errno, info);
    }
    s->words = words;
    s->words->magic = WORDS_MAGIC;
    return ERR_OK;
}

static enum err memory_create(struct session *s, uint64_t bytes, struct err_info *info)
{
    s->memfd = memfd_create("cairn-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s->memfd < 0) {
        return err_set_errno(info, errno, "cannot create the session's memory");
    }
    TRY(memory_size(s->memfd, bytes, info));
    if (fcntl(s->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return err_set_errno(info, errno, "cannot seal the session's memory");
    }
    void *memory =
        mmap(NULL, SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->memfd, 0);
    if (memory == MAP_FAILED) {
        return say_unmapped(errno, info);
    }
    (void)madvise(memory, SESSION_BYTES, MADV_DONTDUMP); // a core dump needs no 4 GiB of holes
    s->memory = memory;
    s->header = memory;
    return ERR_OK;
}

_Static_assert(sizeof(SESSION_ENV_FORMAT) + 20 + SESSION_SOCKET_NAME_BYTES_MAX <=
                   SESSION_ENV_BYTES_MAX,
               "the session's address has room for every number and name");

static enum err socket_create(struct session *s, struct err_info *info)
{
    uint64_t token[2];
    if (getrandom(token, sizeof(token), 0) != (ssize_t)sizeof(token)) {
        return err_set_errno(info, errno, "cannot get random bytes");
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *name = address.sun_path + 1; // abstract
    int name_bytes =
        snprintf(name, SESSION_SOCKET_NAME_BYTES_MAX, "cairn-%u-%016" PRIx64 "%016" PRIx64,
                 (unsigned)getpid(), token[0], token[1]);
    socklen_t address_bytes =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)name_bytes);
    s->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->socket < 0 || bind(s->socket, (struct sockaddr *)&address, address_bytes) != 0 ||
        listen(s->socket, BACKLOG) != 0) {
        return err_set_errno(info, errno, "cannot open the session's socket");
    }
    (void)snprintf(s->environment, sizeof(s->environment), SESSION_ENV_FORMAT, (unsigned)getpid(),
                   s->memfd, name); // fits, see above
    return ERR_OK;
}

// pid_namespaces(7). Return 0 without /proc.
static uint32_t own_pid_namespace(void)
{
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 ? (uint32_t)found.st_ino : 0;
}

enum err
session_create(const struct session_options *options, struct session *out, struct err_info *info)
{
    CLEANUP(session_release) struct session s = {.memfd = -1, .socket = -1};
    TRY(memory_create(&s, SESSION_FILE_BYTES_MAX, info));
    TRY(words_create(&s, info));
    TRY(socket_create(&s, info));
    s.header->version = SESSION_VERSION;
    _Static_assert(sizeof(s.header->place) == sizeof(s.environment), "the same text");
    memcpy(s.header->place, s.environment, sizeof(s.header->place));
    s.header->flags = options->flags;
    s.header->session_bytes = SESSION_BYTES;
    s.header->sample_bytes = options->sample_bytes;
    s.header->sample_seed = options->sample_seed;
    s.header->max_frames =
        options->max_frames < SESSION_FRAMES_MAX ? options->max_frames : SESSION_FRAMES_MAX;
    s.pid_namespace = own_pid_namespace();
    s.header->recorder_pid = (uint32_t)getpid();
    s.header->recorder_namespace = s.pid_namespace;
    s.header->magic = SESSION_MAGIC;
    *out = s;
    s = (struct session){.memfd = -1, .socket = -1};
    return ERR_OK;
}

// Wipe a group of regions, and let it be claimed.
static void wipe_group(const struct session *session, uint32_t group)
{
    struct words_file *words = session->words;
    const uint64_t first = (uint64_t)group * WORDS_GROUP;
    (void)fallocate(session->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)(SESSION_WORDS_OFFSET + words_region_offset((uint32_t)first)),
                    (off_t)(WORDS_GROUP * sizeof(struct words_region)));
    for (uint32_t i = 0; i < WORDS_GROUP; i++) {
        atomic_store_explicit(words->regions + first + i, 0, memory_order_relaxed);
    }
    atomic_store_explicit(words->owners + group, 0, memory_order_relaxed);
    atomic_store_explicit(words->gives_rows + group, 0, memory_order_relaxed);
    // Release: pairs with the acquire of the next claim; it must see zeros.
    atomic_fetch_and_explicit(&words->groups[group / 64], ~((uint64_t)1 << group % 64),
                              memory_order_release);
}

void session_wipe_words(const struct session *session, uint32_t number)
{
    for (uint32_t group = 0; group < WORDS_GROUPS; group++) {
        // Relaxed: the owner has ended.
        if (atomic_load_explicit(session->words->owners + group, memory_order_relaxed) == number) {
            wipe_group(session, group);
        }
    }
}

// Return the region of the process's entries; WORDS_REGIONS_MAX: it has none.
static uint32_t entries_region(const struct session *session, uint32_t number)
{
    const uint64_t note = words_region_note(number, ENTRY_PLACE);
    uint32_t i = 0;
    // Relaxed: stored before the process had rows.
    while (i < WORDS_REGIONS_MAX &&
           atomic_load_explicit(session->words->regions + i, memory_order_relaxed) != note) {
        i++;
    }
    return i;
}

struct free_rows *session_map_free_rows(const struct session *session, uint32_t number)
{
    const uint32_t region = entries_region(session, number);
    if (region == WORDS_REGIONS_MAX) {
        return NULL;
    }
    const uint64_t offset = SESSION_WORDS_OFFSET + words_region_offset(region) + FREE_ROWS_OFFSET;
    void *rows = mmap(NULL, sizeof(struct free_rows), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, session->memfd, (off_t)offset);
    if (rows == MAP_FAILED) {
        return NULL;
    }
    // Relaxed: it guards nothing; the list is there, and empty.
    atomic_store_explicit(session->words->gives_rows + region / WORDS_GROUP, 1,
                          memory_order_relaxed);
    return rows;
}

void session_unmap_free_rows(struct free_rows *rows)
{
    if (rows != NULL) {
        (void)munmap(rows, sizeof(*rows)); // cannot fail for our own mapping
    }
}

void session_close_door(struct session *session)
{
    if (session->door > 0) {
        (void)close(session->door);
        (void)unlink(session->door_path); // another process may have removed it
        session->door = 0;
    }
}

void session_give_words_back(const struct session *session)
{
    if (session->words != NULL) {
        (void)fallocate(session->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        (off_t)(SESSION_WORDS_OFFSET + WORDS_HEADER_BYTES),
                        (off_t)(WORDS_FILE_BYTES - WORDS_HEADER_BYTES));
    }
}

void session_release(struct session *session)
{
    if (session->words != NULL) {
        session_give_words_back(session);
        (void)munmap(session->words, sizeof(*session->words));
        session->words = NULL;
    }
    if (session->memory != NULL) {
        (void)munmap(session->memory, SESSION_BYTES);
        session->memory = NULL;
        session->header = NULL;
    }
    if (session->memfd > 0) {
        (void)close(session->memfd);
    }
    if (session->socket > 0) {
        (void)close(session->socket);
    }
    session_close_door(session);
    session->memfd = -1;
    session->socket = -1;
}

static bool may_join(int peer)
{
    struct ucred peer_is;
    socklen_t bytes = sizeof(peer_is);
    if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &peer_is, &bytes) != 0) {
        return false;
    }
    if (peer_is.uid == geteuid()) {
        return true;
    }
    pid_t pid = peer_is.pid;
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        if (pid == getpid()) {
            return true;
        }
        pid = proc_file_parent(pid);
    }
    return false;
}

static void send_memfd(int peer, int memfd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char one = 1;
    struct iovec body = {.iov_base = &one, .iov_len = 1};
    struct msghdr message = {.msg_iov = &body,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &memfd, sizeof(memfd));
    // If it cannot be sent at once, the peer is not a client of the session.
    (void)sendmsg(peer, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool answer_at(const struct session *session, int listener)
{
    for (;;) {
        int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer < 0) {
            return errno == EAGAIN;
        }
        if (may_join(peer)) {
            send_memfd(peer, session->memfd);
        }
        (void)close(peer);
    }
}

bool session_answer(const struct session *session)
{
    const bool is_done = answer_at(session, session->socket);
    return (session->door <= 0 || answer_at(session, session->door)) && is_done;
}

// Make a socket in /tmp, which most sandboxes show. Return 0 if that fails. It gives the memfd to
// the same processes as the other socket, so the file need not restrict access.
static int bind_door(char path[static DOOR_PATH_BYTES])
{
    uint64_t token = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (getrandom(&token, sizeof(token), 0) != (ssize_t)sizeof(token)) {
        return 0;
    }
    (void)snprintf(path, DOOR_PATH_BYTES, "/tmp/cairn-%u-%016" PRIx64 ".socket", (unsigned)getpid(),
                   token);                                                  // fits
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path); // fits
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd > 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
        if (chmod(path, 0666) == 0 && listen(fd, BACKLOG) == 0) {
            return fd;
        }
        (void)unlink(path); // just created
    }
    if (fd > 0) {
        (void)close(fd);
    }
    return 0;
}

void session_open_door(struct session *session)
{
    struct session_header *header = session->header;
    // Relaxed: only a flag; it stays until the answer.
    if (session->door > 0 ||
        atomic_load_explicit(&header->door, memory_order_relaxed) != DOOR_WANTED) {
        return;
    }
    session->door = bind_door(session->door_path);
    memcpy(header->door_path, session->door_path, sizeof(header->door_path));
    // Release: the path comes first for any acquire of DOOR_OPEN.
    atomic_store_explicit(&header->door, session->door > 0 ? DOOR_OPEN : DOOR_REFUSED,
                          memory_order_release);
    (void)syscall(SYS_futex, &header->door, FUTEX_WAKE, INT_MAX, NULL, NULL,
                  0); // there may be no sleeper
}

void session_recycle_lane(const struct session *session, uint32_t lane)
{
    off_t offset = (off_t)(SESSION_LANES_OFFSET + (uint64_t)lane * LANE_STRIDE);
    if (fallocate(session->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                  (off_t)LANE_STRIDE) != 0) {
        memset(session_lane(session->memory, lane), 0, LANE_STRIDE); // slower, the same to readers
    }
    // Release: pairs with the acquire of the next claim of the lane; it must see zeros.
    atomic_fetch_and_explicit(&session->header->lane_bitmap[lane / 64],
                              ~((uint64_t)1 << (lane % 64)), memory_order_release);
}

void session_note_unread(const struct session *session, uint32_t recycled)
{
    struct session_header *header = session->header;
    const bool was_long = session_unread_lanes(header) > LANES_UNREAD_MAX;
    // Relaxed: the count guards no other data.
    atomic_store_explicit(&header->recycled_lanes, recycled, memory_order_relaxed);
    if (was_long) {
        (void)syscall(SYS_futex, &header->recycled_lanes, FUTEX_WAKE, INT_MAX, NULL, NULL,
                      0); // there may be no sleeper
    }
}
