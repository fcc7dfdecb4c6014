// SPDX-License-Identifier: MIT
// session_join: see session_join.h.
#include "session/session_join.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/sys.h"
#include "session/session_env.h"

// Numbers of lanes to try, most first: 4 GiB of address space, then what a limit may leave.
static const uint32_t lane_counts[] = {SESSION_MAX_LANES, 1024, 256, 64, 16, 4};

// The two parts of the environment's value, each ended by a zero byte.
struct session_place {
    char path[SESSION_ENV_BYTES_MAX];
    char socket_name[SESSION_SOCKET_NAME_BYTES_MAX];
    size_t socket_name_len;
};

static enum err parse_place(const char *value, struct session_place *place)
{
    size_t path_len = 0;
    while (value[path_len] != '\0' && value[path_len] != ':') {
        if (path_len + 1 >= sizeof(place->path)) {
            return ERR_INVALID;
        }
        place->path[path_len] = value[path_len];
        path_len++;
    }
    place->path[path_len] = '\0';
    const char *name = value[path_len] == ':' ? value + path_len + 1 : "";
    while (name[place->socket_name_len] != '\0') {
        if (place->socket_name_len >= sizeof(place->socket_name)) {
            return ERR_INVALID;
        }
        place->socket_name[place->socket_name_len] = name[place->socket_name_len];
        place->socket_name_len++;
    }
    return path_len > 0 ? ERR_OK : ERR_INVALID;
}

// O_NONBLOCK and O_NOCTTY: in another pid namespace the path may name anything, a terminal or a
// FIFO too.
static long open_path(const char *path)
{
    return sys_open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
}

static long receive_descriptor(int socket_fd)
{
    char byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    long got;
    do {
        got = sys_call6(SYS_recvmsg, socket_fd, (long)&message, MSG_CMSG_CLOEXEC, 0, 0, 0);
    } while (got == -EINTR);
    if (sys_failed(got)) {
        return got;
    }
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int))) {
        return -EBADMSG;
    }
    int fd;
    __builtin_memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

static long open_by_socket(const struct session_place *place)
{
    if (place->socket_name_len == 0) {
        return -ENOENT;
    }
    long socket_fd = sys_call6(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0, 0);
    if (sys_failed(socket_fd)) {
        return socket_fd;
    }
    // A recorder that hangs must not hang the program.
    const struct timeval patience = {.tv_sec = 2};
    (void)sys_call6(SYS_setsockopt, socket_fd, SOL_SOCKET, SO_RCVTIMEO, (long)&patience,
                    sizeof(patience), 0);
    (void)sys_call6(SYS_setsockopt, socket_fd, SOL_SOCKET, SO_SNDTIMEO, (long)&patience,
                    sizeof(patience), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    __builtin_memcpy(address.sun_path + 1, place->socket_name, place->socket_name_len);
    const size_t address_len = offsetof(struct sockaddr_un, sun_path) + 1 + place->socket_name_len;
    long result = sys_call6(SYS_connect, socket_fd, (long)&address, (long)address_len, 0, 0, 0);
    if (!sys_failed(result)) {
        result = receive_descriptor((int)socket_fd);
    }
    (void)sys_close((int)socket_fd); // nothing is buffered in it
    return result;
}

static bool is_session(const struct session_header *header)
{
    return header->magic == SESSION_MAGIC && header->version == SESSION_VERSION &&
           header->session_bytes == SESSION_BYTES;
}

// Maps header, slots and as many lanes as the address space allows.
static enum err map_session(int fd, struct session_mapping *out)
{
    const long file_bytes = sys_fstat_size(fd);
    if (sys_failed(file_bytes) || (uint64_t)file_bytes < SESSION_BYTES) {
        return ERR_UNSUPPORTED;
    }
    for (size_t i = 0; i < sizeof(lane_counts) / sizeof(lane_counts[0]); i++) {
        const size_t bytes = SESSION_LANES_OFFSET + (size_t)lane_counts[i] * LANE_STRIDE;
        const long at = sys_mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (sys_failed(at)) {
            continue;
        }
        void *session = (void *)at;
        (void)sys_madvise(session, bytes, MADV_DONTDUMP); // only spares core files its pages
        if (sys_failed(sys_mprotect(session, SESSION_LANES_OFFSET, PROT_READ | PROT_WRITE)) ||
            !is_session(session)) {
            (void)sys_munmap(session, bytes); // cannot fail for a mapping that we made
            return ERR_UNSUPPORTED;
        }
        *out = (struct session_mapping){.header = session, .lane_count = lane_counts[i]};
        return ERR_OK;
    }
    return ERR_NO_MEMORY;
}

static enum err map_and_close(long fd, struct session_mapping *out)
{
    if (sys_failed(fd)) {
        return ERR_NOT_FOUND;
    }
    enum err result = map_session((int)fd, out);
    (void)sys_close((int)fd); // the mapping keeps the memory
    return result;
}

enum err session_join(const char *env_value, struct session_mapping *out)
{
    struct session_place place = {.socket_name_len = 0};
    TRY(parse_place(env_value, &place));
    enum err result = map_and_close(open_path(place.path), out);
    // A path that leads to something else is a path in somebody else's pid namespace.
    if (result == ERR_NOT_FOUND || result == ERR_UNSUPPORTED) {
        enum err by_socket = map_and_close(open_by_socket(&place), out);
        result = by_socket == ERR_NOT_FOUND ? result : by_socket;
    }
    return result;
}

static bool is_session_file(long fd)
{
    if (sys_failed(fd)) {
        return false;
    }
    const long file_bytes = sys_fstat_size((int)fd);
    (void)sys_close((int)fd); // only looked at
    return !sys_failed(file_bytes) && (uint64_t)file_bytes == SESSION_BYTES;
}

bool session_is_reachable(const char *env_value)
{
    struct session_place place = {.socket_name_len = 0};
    return parse_place(env_value, &place) == ERR_OK &&
           (is_session_file(open_path(place.path)) || is_session_file(open_by_socket(&place)));
}

enum err session_claim_process(struct session_header *session, uint32_t *index)
{
    for (uint32_t i = 0; i < SESSION_MAX_PROCESSES; i++) {
        struct process_slot *slot = session_process(session, i);
        uint32_t expected = PROCESS_FREE;
        // Acquire: sees what the recorder cleared before it gave the slot back with release.
        if (atomic_load_explicit(&slot->state, memory_order_relaxed) == PROCESS_FREE &&
            atomic_compare_exchange_strong_explicit(&slot->state, &expected, PROCESS_CLAIMED,
                                                    memory_order_acquire, memory_order_relaxed)) {
            *index = i;
            return ERR_OK;
        }
    }
    return ERR_LIMIT;
}

// Sets the bit of a free lane in word `word_index`; false if there is none. Access comes before the
// claim, so that a claim never has to be taken back.
static enum err
claim_in_word(const struct session_mapping *mapping, uint32_t word_index, struct lane_header **out)
{
    _Atomic uint64_t *word = &mapping->header->lane_bitmap[word_index];
    uint64_t used = atomic_load_explicit(word, memory_order_relaxed);
    while (used != UINT64_MAX) {
        const uint32_t bit = (uint32_t)__builtin_ctzll(~used);
        const uint32_t index = word_index * 64 + bit;
        if (index >= mapping->lane_count) {
            return ERR_LIMIT;
        }
        struct lane_header *lane = session_lane(mapping->header, index);
        if (sys_failed(sys_mprotect(lane, LANE_STRIDE, PROT_READ | PROT_WRITE))) {
            return ERR_NO_MEMORY;
        }
        // Acquire: sees the lane as the recorder zeroed it before it cleared the bit with release.
        if (atomic_compare_exchange_strong_explicit(word, &used, used | (uint64_t)1 << bit,
                                                    memory_order_acquire, memory_order_relaxed)) {
            *out = lane;
            return ERR_OK;
        }
    }
    return ERR_LIMIT;
}

enum err session_claim_lane(const struct session_mapping *mapping,
                            uint32_t process_index,
                            uint32_t thread_id,
                            struct lane_header **out)
{
    struct lane_header *lane = NULL;
    enum err result = ERR_LIMIT;
    for (uint32_t i = 0; i * 64 < mapping->lane_count && result == ERR_LIMIT; i++) {
        result = claim_in_word(mapping, i, &lane);
    }
    TRY(result);
    lane->process_index = process_index;
    lane->thread_id = thread_id;
    lane->start_ms = atomic_load_explicit(&mapping->header->clock_ms, memory_order_relaxed);
    atomic_store_explicit(&lane->ring_bytes, LANE_RING_BYTES_MIN, memory_order_relaxed);
    // Release: the fields above are final for a recorder that acquires LANE_ACTIVE.
    atomic_store_explicit(&lane->state, LANE_ACTIVE, memory_order_release);
    *out = lane;
    return ERR_OK;
}
