// SPDX-License-Identifier: MIT
// session_create: what a joining process gets, by either door, and what it cannot break.
#include "recorder/session/session_create.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"

static const struct session_options options = {.flags = SESSION_FOLLOW_CHILDREN, .max_frames = 99};

static void the_header_is_filled_in(void **state)
{
    (void)state;
    struct session s;
    assert_int_equal(session_create(&options, &s, NULL), ERR_OK);
    assert_int_equal(s.header->magic, SESSION_MAGIC);
    assert_int_equal(s.header->version, SESSION_VERSION);
    assert_int_equal(s.header->flags, SESSION_FOLLOW_CHILDREN);
    assert_int_equal(s.header->session_bytes, SESSION_BYTES);
    assert_int_equal(s.header->max_frames, 99);
    assert_int_equal(s.header->recorder_pid, getpid());
    assert_int_equal(atomic_load(&s.header->state), SESSION_STARTING);
    session_release(&s);
    session_release(&s); // a released session is empty
}

static void max_frames_has_a_bound(void **state)
{
    (void)state;
    struct session s;
    assert_int_equal(session_create(&(struct session_options){.max_frames = UINT32_MAX}, &s, NULL),
                     ERR_OK);
    assert_int_equal(s.header->max_frames, SESSION_FRAMES_MAX);
    session_release(&s);
}

static void the_memory_is_found_through_proc(void **state)
{
    (void)state;
    struct session s;
    assert_int_equal(session_create(&options, &s, NULL), ERR_OK);
    char path[SESSION_ENV_BYTES_MAX];
    (void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(s.environment, ":"), s.environment);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    struct session_header *theirs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(theirs != MAP_FAILED);
    atomic_store(&theirs->recorder_wake, 41);
    assert_int_equal(atomic_load(&s.header->recorder_wake), 41);
    assert_int_equal(munmap(theirs, 4096), 0);
    assert_int_equal(close(fd), 0);
    session_release(&s);
}

// Connect to the session's socket, as a process that joins does.
static int connect_to(const struct session *s)
{
    const char *name = strchr(s->environment, ':') + 1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, bytes), 0);
    return fd;
}

// A recorder of many processes may have used up its descriptors: it must not poll the socket, which
// stays readable, again and again.
static void a_client_waits_while_there_is_no_descriptor(void **state)
{
    (void)state;
    struct session s;
    struct rlimit limit;
    assert_int_equal(session_create(&options, &s, NULL), ERR_OK);
    const int fd = connect_to(&s);
    char byte;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const bool has_answered = session_answer(&s);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_false(has_answered);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_true(session_answer(&s));
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(close(fd), 0);
    session_release(&s);
}

static void the_memory_is_handed_out_at_the_socket(void **state)
{
    (void)state;
    struct session s;
    assert_int_equal(session_create(&options, &s, NULL), ERR_OK);
    assert_true(session_answer(&s)); // no process waits: returns at once
    const int fd = connect_to(&s);
    assert_true(session_answer(&s));
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec body = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &body,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    assert_int_equal(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), 1);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    assert_non_null(rights);
    assert_int_equal(rights->cmsg_type, SCM_RIGHTS);
    int memfd;
    memcpy(&memfd, CMSG_DATA(rights), sizeof(memfd));
    uint64_t magic = 0;
    assert_int_equal(pread(memfd, &magic, sizeof(magic), 0), sizeof(magic));
    assert_int_equal(magic, SESSION_MAGIC);
    assert_int_equal(recv(fd, &byte, 1, 0), 0); // and the connection ends
    assert_int_equal(close(memfd), 0);
    assert_int_equal(close(fd), 0);
    session_release(&s);
}

static void nobody_can_pull_the_memory_away(void **state)
{
    (void)state;
    struct session s;
    assert_int_equal(session_create(&options, &s, NULL), ERR_OK);
    assert_int_equal(ftruncate(s.memfd, 4096), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(s.memfd, (off_t)SESSION_BYTES * 2), -1);
    assert_int_equal(errno, EPERM);
    session_release(&s);
}

static void a_recycled_lane_is_free_and_all_zeros(void **state)
{
    (void)state;
    struct session s;
    assert_int_equal(session_create(&options, &s, NULL), ERR_OK);
    for (uint32_t index = 0; index < SESSION_MAX_LANES; index += 1365) {
        uint8_t *lane = (uint8_t *)session_lane(s.memory, index);
        memset(lane, 0xaa, LANE_STRIDE);
        atomic_fetch_or(&s.header->lane_bitmap[index / 64], (uint64_t)1 << index % 64);
        session_recycle_lane(&s, index);
        assert_int_equal(atomic_load(&s.header->lane_bitmap[index / 64]), 0);
        for (size_t i = 0; i < LANE_STRIDE; i++) {
            if (lane[i] != 0) {
                fail_msg("byte %zu of lane %u is %u", i, index, lane[i]);
            }
        }
    }
    session_release(&s);
}

// Return the rest of the limit when the session has been made.
static rlim_t limit_now(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : 0;
}

// Each case runs in a process of its own, whose status shows how far it came.
static int make_under_limit(rlim_t hard)
{
    enum {
        LOW = 4096
    };
    const struct rlimit limit = {.rlim_cur = LOW, .rlim_max = hard};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        return 100;
    }
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &head, none) != 0) { // root could lift any
        return 101;
    }
    struct session s;
    struct err_info info = {0};
    const enum err err = session_create(&options, &s, &info);
    if (limit_now() != LOW) {
        return 102; // the program would not have its own limit
    }
    if (err == ERR_OK) {
        session_release(&s);
        return 0;
    }
    char size[32];
    (void)snprintf(size, sizeof(size), " %u GiB ",
                   (unsigned)(SESSION_FILE_BYTES_MAX / 1024 / 1024 / 1024));
    return err == ERR_LIMIT && strstr(info.text, "ulimit -Hf") != NULL &&
                   strstr(info.text, size) != NULL
               ? 1
               : 103;
}

static void a_limit_on_files_is_lifted_or_reported(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        rlim_t hard;
        int status;
    } cases[] = {
        {"a soft limit", RLIM_INFINITY, 0},
        {"a hard limit that is high enough", SESSION_FILE_BYTES_MAX, 0},
        {"a hard limit", SESSION_FILE_BYTES_MAX - 1, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(make_under_limit(cases[i].hard));
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        print_message("%s\n", cases[i].what);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_is_filled_in),
        cmocka_unit_test(max_frames_has_a_bound),
        cmocka_unit_test(the_memory_is_found_through_proc),
        cmocka_unit_test(the_memory_is_handed_out_at_the_socket),
        cmocka_unit_test(a_client_waits_while_there_is_no_descriptor),
        cmocka_unit_test(nobody_can_pull_the_memory_away),
        cmocka_unit_test(a_recycled_lane_is_free_and_all_zeros),
        cmocka_unit_test(a_limit_on_files_is_lifted_or_reported),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
