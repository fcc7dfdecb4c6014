// SPDX-License-Identifier: MIT
#include "target/producer/session_join.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/sys.h"
#include "session/recorder_wake.h"

// The address of each lane in this process, by number; NULL: none yet. 32 KiB; only pages
// of used lanes are touched.
static struct {
    _Atomic(struct lane_header *) at[SESSION_MAX_LANES];
} g_lanes;

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

// O_NONBLOCK and O_NOCTTY: in another pid namespace the path may name any file, even a terminal or
// a FIFO.
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
        got = SYS_CALL(SYS_recvmsg, socket_fd, (long)&message, MSG_CMSG_CLOEXEC);
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
    long socket_fd = SYS_CALL(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
    if (sys_failed(socket_fd)) {
        return socket_fd;
    }
    // A recorder that hangs must not hang the program.
    const struct timeval patience = {.tv_sec = 2};
    (void)SYS_CALL(SYS_setsockopt, socket_fd, SOL_SOCKET, SO_RCVTIMEO, (long)&patience,
                   sizeof(patience));
    (void)SYS_CALL(SYS_setsockopt, socket_fd, SOL_SOCKET, SO_SNDTIMEO, (long)&patience,
                   sizeof(patience));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t zero_bytes = place->socket_name[0] == '/' ? 0 : 1; // before an abstract name
    __builtin_memcpy(address.sun_path + zero_bytes, place->socket_name, place->socket_name_len);
    const size_t address_len =
        offsetof(struct sockaddr_un, sun_path) + 1 + place->socket_name_len; // or behind a path
    long result = SYS_CALL(SYS_connect, socket_fd, (long)&address, (long)address_len);
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

uint64_t session_address_limit(void)
{
    struct rlimit limit = {.rlim_cur = 0};
    const long result = SYS_CALL(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit);
    return sys_failed(result) ? 0 : limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

// Map header and slots, and room for all lanes unless address space is scarce.
static enum err map_session(int fd, struct session_mapping *out)
{
    const long file_bytes = sys_fstat_size(fd);
    if (sys_failed(file_bytes) || (uint64_t)file_bytes < SESSION_BYTES) {
        return ERR_UNSUPPORTED;
    }
    bool is_lean = session_address_limit() != UINT64_MAX;
    size_t bytes = is_lean ? SESSION_LANES_OFFSET : SESSION_BYTES;
    long at = sys_mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (sys_failed(at) && !is_lean) {
        is_lean = true;
        bytes = SESSION_LANES_OFFSET;
        at = sys_mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    if (sys_failed(at)) {
        return ERR_NO_MEMORY;
    }
    void *session = (void *)at;
    (void)sys_madvise(session, bytes, MADV_DONTDUMP); // only spares core files its pages
    if (sys_failed(sys_mprotect(session, SESSION_LANES_OFFSET, PROT_READ | PROT_WRITE)) ||
        !is_session(session)) {
        (void)sys_munmap(session, bytes); // cannot fail for a mapping that we made
        return ERR_UNSUPPORTED;
    }
    out->header = session;
    out->lane_count = SESSION_MAX_LANES;
    atomic_store_explicit(&out->is_lean, is_lean, memory_order_relaxed); // no other thread yet
    return ERR_OK;
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
    // A path that leads to another kind of file belongs to another pid namespace.
    if (result == ERR_NOT_FOUND || result == ERR_UNSUPPORTED) {
        enum err by_socket = map_and_close(open_by_socket(&place), out);
        result = by_socket == ERR_NOT_FOUND ? result : by_socket;
    }
    if (result == ERR_OK) {
        __builtin_memcpy(&out->place, &place, sizeof(place));
    }
    return result;
}

enum err session_take(struct session_header *header, struct session_mapping *out)
{
    if (!is_session(header)) {
        return ERR_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < SESSION_MAX_LANES; i++) {
        if (atomic_load_explicit(&g_lanes.at[i], memory_order_relaxed) != NULL) {
            atomic_store_explicit(&g_lanes.at[i], NULL, memory_order_relaxed);
        }
    }
    out->place.path[0] = '\0';
    out->place.socket_name_len = 0;
    // A filter that the recorder has examined may still forbid what opens the memory. Without a
    // place no lane can be mapped alone.
    if (SYS_CALL(SYS_prctl, PR_GET_SECCOMP) == 0) {
        (void)parse_place(header->place, &out->place); // it has none
    }
    atomic_store_explicit(&out->is_lean, false, memory_order_relaxed); // no other thread joins
    out->lane_count = SESSION_MAX_LANES;
    out->header = header;
    return ERR_OK;
}

// Return the descriptor if it is a session's memory; else close it.
static long keep_session(long fd)
{
    if (sys_failed(fd)) {
        return fd;
    }
    const long file_bytes = sys_fstat_size((int)fd);
    if (!sys_failed(file_bytes) && (uint64_t)file_bytes >= SESSION_BYTES) {
        return fd;
    }
    (void)sys_close((int)fd); // only examined
    return -EBADF;
}

long session_open_memory(const struct session_place *place)
{
    const long fd = keep_session(open_path(place->path));
    return sys_failed(fd) ? keep_session(open_by_socket(place)) : fd;
}

bool session_is_reachable(const char *env_value)
{
    struct session_place place = {.socket_name_len = 0};
    const long fd = parse_place(env_value, &place) == ERR_OK ? session_open_memory(&place) : -1;
    if (sys_failed(fd)) {
        return false;
    }
    (void)sys_close((int)fd); // only opened
    return true;
}

enum err session_claim_process(struct session_header *session, uint32_t *index)
{
    for (uint32_t i = 0; i < SESSION_MAX_PROCESSES; i++) {
        struct process_slot *slot = session_process(session, i);
        uint32_t expected = PROCESS_FREE;
        // Acquire: sees the slot as the recorder cleared it before it gave it back with release.
        if (atomic_load_explicit(&slot->state, memory_order_relaxed) == PROCESS_FREE &&
            atomic_compare_exchange_strong_explicit(&slot->state, &expected, PROCESS_CLAIMED,
                                                    memory_order_acquire, memory_order_relaxed)) {
            *index = i;
            return ERR_OK;
        }
    }
    return ERR_LIMIT;
}

// Make the lane accessible in its reserved room. NULL if it has no room any more.
static struct lane_header *open_reserved(struct session_mapping *mapping, uint32_t index)
{
    struct lane_header *lane = session_lane(mapping->header, index);
    struct lane_header *before =
        atomic_exchange_explicit(&g_lanes.at[index], lane, memory_order_seq_cst);
    // Sequentially consistent, as in session_map_leanly: either that function sees our lane, and
    // leaves it, or we see that it has begun.
    if (atomic_load_explicit(&mapping->is_lean, memory_order_seq_cst) && before == NULL) {
        atomic_store_explicit(&g_lanes.at[index], NULL, memory_order_relaxed);
        return NULL;
    }
    return sys_failed(sys_mprotect(lane, LANE_STRIDE, PROT_READ | PROT_WRITE)) ? NULL : lane;
}

// Map the lane alone, unless it is mapped.
static struct lane_header *open_alone(const struct session_mapping *mapping, uint32_t index)
{
    // Relaxed: the mapping was there before its address was stored, and stays.
    struct lane_header *lane = atomic_load_explicit(&g_lanes.at[index], memory_order_relaxed);
    if (lane != NULL) {
        return lane;
    }
    const long fd = session_open_memory(&mapping->place);
    if (sys_failed(fd)) {
        return NULL;
    }
    const int64_t offset = (int64_t)(SESSION_LANES_OFFSET + (uint64_t)index * LANE_STRIDE);
    const long at = sys_mmap(NULL, LANE_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                             (int)fd, offset);
    (void)sys_close((int)fd); // the mapping keeps the memory
    if (sys_failed(at)) {
        return NULL;
    }
    (void)sys_madvise((void *)at, LANE_STRIDE, MADV_DONTDUMP); // as in map_session
    if (!atomic_compare_exchange_strong_explicit(&g_lanes.at[index], &lane, (void *)at,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        (void)sys_munmap((void *)at, LANE_STRIDE); // another thread of ours was first
        return lane;
    }
    return (struct lane_header *)at;
}

static struct lane_header *open_lane(struct session_mapping *mapping, uint32_t index)
{
    const bool is_lean = atomic_load_explicit(&mapping->is_lean, memory_order_relaxed);
    struct lane_header *lane = is_lean ? NULL : open_reserved(mapping, index);
    // Relaxed: its own change was seen in open_reserved.
    return lane == NULL && atomic_load_explicit(&mapping->is_lean, memory_order_relaxed)
               ? open_alone(mapping, index)
               : lane;
}

void session_map_leanly(struct session_mapping *mapping)
{
    if (mapping->header == NULL ||
        atomic_exchange_explicit(&mapping->is_lean, true, memory_order_seq_cst)) {
        return;
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i <= SESSION_MAX_LANES; i++) {
        // Sequentially consistent: see open_reserved.
        const bool is_used = i == SESSION_MAX_LANES ||
                             atomic_load_explicit(&g_lanes.at[i], memory_order_seq_cst) != NULL;
        if (is_used && i > first) {
            (void)sys_munmap(session_lane(mapping->header, first),
                             (size_t)(i - first) * LANE_STRIDE); // refused, it stays reserved
        }
        first = is_used ? i + 1 : first;
    }
}

// Set the bit of a free lane in word `word_index`; false if there is none. Access comes before the
// claim, so a claim never has to be undone.
static enum err
claim_in_word(struct session_mapping *mapping, uint32_t word_index, struct lane_header **out)
{
    _Atomic uint64_t *word = &mapping->header->lane_bitmap[word_index];
    uint64_t used = atomic_load_explicit(word, memory_order_relaxed);
    while (used != UINT64_MAX) {
        const uint32_t bit = (uint32_t)__builtin_ctzll(~used);
        const uint32_t index = word_index * 64 + bit;
        if (index >= mapping->lane_count) {
            return ERR_LIMIT;
        }
        struct lane_header *lane = open_lane(mapping, index);
        if (lane == NULL) {
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

enum err session_claim_lane(struct session_mapping *mapping,
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
    lane->start_ms = session_now_ms(mapping->header);
    atomic_store_explicit(&lane->ring_bytes, LANE_RING_BYTES_MIN, memory_order_relaxed);
    // Release: the fields above are final for a recorder that acquires LANE_ACTIVE.
    atomic_store_explicit(&lane->state, LANE_ACTIVE, memory_order_release);
    *out = lane;
    return ERR_OK;
}
