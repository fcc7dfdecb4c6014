// SPDX-License-Identifier: MIT
// Tests which values lead to a session, by path and by socket, and what a process claims in it.
#include "target/producer/session_join.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"
#include "session/session_env.h"

// Make a memfd that is a session except for the changes of a case.
static int make_session(uint64_t magic, uint32_t version, uint64_t session_bytes, uint64_t size)
{
    const int fd = memfd_create("session", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    const struct session_header header = {
        .magic = magic, .version = version, .session_bytes = session_bytes, .clock_ms = 77};
    const ssize_t wanted = size < sizeof(header) ? (ssize_t)size : (ssize_t)sizeof(header);
    assert_int_equal(pwrite(fd, &header, (size_t)wanted, 0), wanted);
    return fd;
}

static int good_session(void)
{
    return make_session(SESSION_MAGIC, SESSION_VERSION, SESSION_BYTES, SESSION_BYTES);
}

static void leave(struct session_mapping *mapping)
{
    (void)munmap(mapping->header, SESSION_LANES_OFFSET + (size_t)mapping->lane_count * LANE_STRIDE);
}

static int open_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

static enum err join_fd(int fd, struct session_mapping *mapping)
{
    char value[SESSION_ENV_BYTES_MAX];
    (void)snprintf(value, sizeof(value), SESSION_ENV_FORMAT, (unsigned)getpid(), fd, "nobody");
    return session_join(value, mapping);
}

static void a_session_is_found_by_its_path_and_leaves_no_descriptor(void **state)
{
    (void)state;
    const int fd = good_session();
    const int before = open_descriptors();
    struct session_mapping mapping = {0};
    assert_int_equal(join_fd(fd, &mapping), ERR_OK);
    assert_int_equal(mapping.lane_count, SESSION_MAX_LANES);
    assert_int_equal(mapping.header->clock_ms, 77);
    assert_int_equal(open_descriptors(), before);
    leave(&mapping);
    close(fd);
}

static void files_that_are_no_session_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t magic;
        uint32_t version;
        uint64_t session_bytes;
        uint64_t size;
    } cases[] = {
        {"empty file", SESSION_MAGIC, SESSION_VERSION, SESSION_BYTES, 0},
        {"too short", SESSION_MAGIC, SESSION_VERSION, SESSION_BYTES, SESSION_BYTES - 4096},
        {"other magic", SESSION_MAGIC + 1, SESSION_VERSION, SESSION_BYTES, SESSION_BYTES},
        {"newer version", SESSION_MAGIC, SESSION_VERSION + 1, SESSION_BYTES, SESSION_BYTES},
        {"other layout", SESSION_MAGIC, SESSION_VERSION, SESSION_BYTES * 2, SESSION_BYTES},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const int fd =
            make_session(cases[i].magic, cases[i].version, cases[i].session_bytes, cases[i].size);
        struct session_mapping mapping = {0};
        const enum err got = join_fd(fd, &mapping);
        if (got != ERR_UNSUPPORTED || mapping.header != NULL) {
            print_error("%s: got %d, want %d\n", cases[i].name, got, ERR_UNSUPPORTED);
        }
        assert_int_equal(got, ERR_UNSUPPORTED);
        assert_null(mapping.header);
        close(fd);
    }
}

static void values_that_name_nothing_are_refused(void **state)
{
    (void)state;
    char too_long[2 * SESSION_ENV_BYTES_MAX];
    memset(too_long, 'x', sizeof(too_long));
    too_long[sizeof(too_long) - 1] = '\0';
    const struct {
        const char *value;
        enum err want;
    } cases[] = {
        {"", ERR_INVALID},
        {":name", ERR_INVALID},
        {too_long, ERR_INVALID},
        {"/does/not/exist", ERR_NOT_FOUND},
        {"/does/not/exist:no-such-socket", ERR_NOT_FOUND},
        {"/dev/null", ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct session_mapping mapping = {0};
        assert_int_equal(session_join(cases[i].value, &mapping), cases[i].want);
        assert_null(mapping.header);
    }
}

// The recorder's part of session_env.h: answers one connection with `fd`.
struct answer {
    int listener;
    int fd;
};

static void *answer_once(void *argument)
{
    const struct answer *answer = argument;
    const int peer = accept(answer->listener, NULL, NULL);
    char byte = 's';
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (answer->fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &answer->fd, sizeof(int));
    }
    (void)!sendmsg(peer, &message, 0);
    close(peer);
    return NULL;
}

static enum err join_by_socket(int fd, const char *path, struct session_mapping *mapping)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "cairn-join-test-%d-%d", getpid(), fd);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    struct answer answer = {.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .fd = fd};
    const socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    assert_int_equal(bind(answer.listener, (const struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(answer.listener, 1), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer_once, &answer), 0);
    char value[SESSION_ENV_BYTES_MAX];
    (void)snprintf(value, sizeof(value), "%s:%s", path, name);
    const enum err result = session_join(value, mapping);
    pthread_join(thread, NULL);
    close(answer.listener);
    return result;
}

static void a_session_whose_path_is_closed_to_us_comes_over_the_socket(void **state)
{
    (void)state;
    const int fd = good_session();
    const int before = open_descriptors();
    static const char *const paths[] = {"/does/not/exist", "/dev/null"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct session_mapping mapping = {0};
        assert_int_equal(join_by_socket(fd, paths[i], &mapping), ERR_OK);
        assert_int_equal(mapping.header->clock_ms, 77);
        leave(&mapping);
    }
    struct session_mapping none = {0};
    assert_int_equal(join_by_socket(-1, "/does/not/exist", &none), ERR_NOT_FOUND);
    assert_int_equal(open_descriptors(), before);
    close(fd);
}

// Return the present use. Sanitizers reserve terabytes, so a limit must be relative to it.
static rlim_t address_space_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    (void)fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

// Join in a process of its own, whose address space can grow by that much, before or after it
// joins. Its exit status is the error, or 100 + the number of lanes that it could claim, at most
// 50.
static int claim_within(int fd, rlim_t growth_bytes, bool joins_before)
{
    const pid_t child = fork();
    if (child == 0) {
        struct session_mapping mapping = {0};
        struct lane_header *lane = NULL;
        enum err result = joins_before ? join_fd(fd, &mapping) : ERR_OK;
        session_map_leanly(&mapping);
        const rlim_t bytes = address_space_bytes() + growth_bytes;
        const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
        if (setrlimit(RLIMIT_AS, &limit) != 0) {
            _exit(99);
        }
        result = joins_before ? result : join_fd(fd, &mapping);
        int count = 0;
        while (result == ERR_OK && count < 50 &&
               session_claim_lane(&mapping, 0, 1000, &lane) == ERR_OK) {
            memset(lane_ring(lane), 1, LANE_RING_BYTES_MIN); // the memory exists
            count++;
        }
        _exit(result == ERR_OK ? 100 + count : (int)result);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_small_address_space_has_a_lane_for_each_that_is_used(void **state)
{
    (void)state;
    for (int joins_before = 0; joins_before <= 1; joins_before++) {
        int fd = good_session();
        assert_int_equal(claim_within(fd, 512u << 20, joins_before), 150);
        close(fd);
        fd = good_session();
        assert_in_range(claim_within(fd, 16u << 20, joins_before), 108, 112); // of 1.25 MiB each
        close(fd);
    }
    const int fd = good_session();
    assert_int_equal(claim_within(fd, 0, false), ERR_NO_MEMORY);
    close(fd);
}

// Used lanes stay in place when the room is given back.
static void lanes_in_use_stay_when_the_room_is_given_back(void **state)
{
    (void)state;
    const int fd = good_session();
    struct session_mapping mapping = {0};
    assert_int_equal(join_fd(fd, &mapping), ERR_OK);
    struct lane_header *lanes[3];
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(session_claim_lane(&mapping, 5, 1000 + i, &lanes[i]), ERR_OK);
    }
    const rlim_t before = address_space_bytes();
    session_map_leanly(&mapping);
    assert_true(before - address_space_bytes() > SESSION_BYTES - 4 * (rlim_t)LANE_STRIDE);
    struct lane_header *lane = NULL;
    assert_int_equal(session_claim_lane(&mapping, 5, 1003, &lane), ERR_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lanes[i]->thread_id, 1000 + i);
    }
    assert_int_equal(lane->thread_id, 1003);
    mapping.header->lane_bitmap[0] &= ~(uint64_t)8; // given back, and claimed again
    struct lane_header *again = NULL;
    assert_int_equal(session_claim_lane(&mapping, 5, 1004, &again), ERR_OK);
    assert_ptr_equal(again, lane);
    close(fd);
}

// One that the recorder has mapped, after another one whose room was given back.
static void a_session_that_is_mapped_already_is_taken(void **state)
{
    (void)state;
    const int old_fd = good_session();
    const int fd = good_session();
    struct session_mapping mapping = {0};
    struct lane_header *old = NULL;
    assert_int_equal(join_fd(old_fd, &mapping), ERR_OK);
    session_map_leanly(&mapping);
    assert_int_equal(session_claim_lane(&mapping, 0, 1000, &old), ERR_OK);
    struct session_header *header =
        mmap(NULL, SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    assert_true(header != MAP_FAILED);
    (void)snprintf(header->place, sizeof(header->place), SESSION_ENV_FORMAT, (unsigned)getpid(), fd,
                   "nobody");
    assert_int_equal(session_take(header, &mapping), ERR_OK);
    assert_ptr_equal(mapping.header, header);
    for (uint32_t i = 0; i < 2; i++) {
        struct lane_header *lane = NULL;
        assert_int_equal(session_claim_lane(&mapping, 0, 2000 + i, &lane), ERR_OK);
        assert_ptr_not_equal(lane, old);
        assert_ptr_equal(lane, session_lane(header, i));
    }
    session_map_leanly(&mapping); // further ones are found by its place
    struct lane_header *apart = NULL;
    assert_int_equal(session_claim_lane(&mapping, 0, 2002, &apart), ERR_OK);
    assert_int_equal(apart->thread_id, 2002);
    assert_int_equal(old->thread_id, 1000);
    header->version++;
    assert_int_equal(session_take(header, &mapping), ERR_UNSUPPORTED);
    close(old_fd);
    close(fd);
}

static void slots_and_lanes_are_claimed_once_and_run_out(void **state)
{
    (void)state;
    const int fd = good_session();
    struct session_mapping mapping = {0};
    assert_int_equal(join_fd(fd, &mapping), ERR_OK);
    uint32_t index = 0;
    for (uint32_t i = 0; i < SESSION_MAX_PROCESSES; i++) {
        assert_int_equal(session_claim_process(mapping.header, &index), ERR_OK);
        assert_int_equal(index, i);
        assert_int_equal(session_process(mapping.header, i)->state, PROCESS_CLAIMED);
    }
    assert_int_equal(session_claim_process(mapping.header, &index), ERR_LIMIT);
    session_process(mapping.header, 5)->state = PROCESS_FREE;
    assert_int_equal(session_claim_process(mapping.header, &index), ERR_OK);
    assert_int_equal(index, 5);

    mapping.lane_count = 130; // not a whole number of words
    struct lane_header *lane = NULL;
    for (uint32_t i = 0; i < 130; i++) {
        assert_int_equal(session_claim_lane(&mapping, 5, 1000 + i, &lane), ERR_OK);
        assert_ptr_equal(lane, session_lane(mapping.header, i));
        assert_int_equal(lane->state, LANE_ACTIVE);
        assert_int_equal(lane->thread_id, 1000 + i);
        assert_int_equal(lane->start_ms, 77);
        assert_int_equal(lane->ring_bytes, LANE_RING_BYTES_MIN);
    }
    assert_int_equal(session_claim_lane(&mapping, 5, 1, &lane), ERR_LIMIT);
    mapping.header->lane_bitmap[1] &= ~(uint64_t)2;
    assert_int_equal(session_claim_lane(&mapping, 5, 1, &lane), ERR_OK);
    assert_ptr_equal(lane, session_lane(mapping.header, 65));
    mapping.lane_count = SESSION_MAX_LANES;
    leave(&mapping);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_found_by_its_path_and_leaves_no_descriptor),
        cmocka_unit_test(files_that_are_no_session_are_refused),
        cmocka_unit_test(values_that_name_nothing_are_refused),
        cmocka_unit_test(a_session_whose_path_is_closed_to_us_comes_over_the_socket),
        cmocka_unit_test(a_small_address_space_has_a_lane_for_each_that_is_used),
        cmocka_unit_test(lanes_in_use_stay_when_the_room_is_given_back), // nothing claimed so far
        cmocka_unit_test(a_session_that_is_mapped_already_is_taken),
        cmocka_unit_test(slots_and_lanes_are_claimed_once_and_run_out),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
