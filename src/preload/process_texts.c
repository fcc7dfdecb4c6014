// SPDX-License-Identifier: MIT
// process_texts: see process_texts.h.
#include "preload/process_texts.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "preload/guard.h"
#include "preload/real_functions.h"
#include "unwind/unwind.h"

// The constructor runs once, before any second thread.
static uint8_t g_buffer[WIRE_TEXT_BYTES_MAX];

static void send(struct thread_state *t, enum wire_text_kind kind, const void *text, long len)
{
    if (len > 0) { // errors of the kernel are negative
        lane_producer_send_text(&t->producer, kind,
                                (struct bytes){.data = text, .len = (size_t)len}, false);
    }
}

static void send_string(struct thread_state *t, enum wire_text_kind kind, const char *text)
{
    send(t, kind, text, (long)strlen(text));
}

// The path of the file that AT_EXECFN names; negative if it cannot be learned.
static long find_started_file(void)
{
    const char *name = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
    const long fd = name != NULL ? sys_open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
    if (sys_failed(fd)) {
        return -1;
    }
    char link[32] = "/proc/self/fd/";
    char *at = link + strlen(link);
    for (long unit = 1000000000; unit > 0; unit /= 10) {
        if (fd >= unit || unit == 1) {
            *at++ = (char)('0' + fd / unit % 10);
        }
    }
    const long got = sys_readlink(link, (char *)g_buffer, sizeof(g_buffer));
    (void)sys_close((int)fd); // read only
    return got;
}

// Where the kernel has started the loader of shared libraries itself (AT_BASE is 0), which then
// puts the program's name into AT_EXECFN, /proc/self/exe is the loader.
static void send_executable(struct thread_state *t)
{
    long got = getauxval(AT_BASE) == 0 ? find_started_file() : -1;
    if (sys_failed(got)) {
        got = sys_readlink("/proc/self/exe", (char *)g_buffer, sizeof(g_buffer));
    }
    send(t, WIRE_TEXT_EXECUTABLE, g_buffer, got);
}

static void send_working_directory(struct thread_state *t)
{
    const long got =
        sys_call6(SYS_getcwd, (long)g_buffer, sizeof(g_buffer), 0, 0, 0, 0); // counts the zero
    send(t, WIRE_TEXT_WORKING_DIRECTORY, g_buffer, got - 1);
}

// Reads ahead by one part, so that each part knows whether another follows.
static void send_command_line(struct thread_state *t)
{
    const long fd = sys_open("/proc/self/cmdline", O_RDONLY, 0);
    if (sys_failed(fd)) {
        return;
    }
    uint32_t total = 0;
    long got = sys_read((int)fd, g_buffer, sizeof(g_buffer));
    while (got > 0) {
        total += (uint32_t)got;
        uint8_t next[1];
        const long ahead =
            total < PROCESS_TEXT_BYTES_MAX ? sys_read((int)fd, next, sizeof(next)) : 0;
        const struct bytes part = {.data = g_buffer, .len = (size_t)got};
        lane_producer_send_text(&t->producer, WIRE_TEXT_COMMAND_LINE, part, ahead > 0);
        got = 0;
        if (ahead > 0) {
            g_buffer[0] = next[0];
            got = sys_read((int)fd, g_buffer + 1, sizeof(g_buffer) - 1);
            got = sys_failed(got) ? 1 : got + 1;
        }
    }
    (void)sys_close((int)fd); // read only
}

static void send_allocator(struct thread_state *t)
{
    struct unwind_module module;
    uint64_t address;
    memcpy(&address, &g_real.malloc, sizeof(address));
    if (unwind_find_module(address, &module)) {
        send_string(t, WIRE_TEXT_ALLOCATOR, module.path);
    }
}

void process_texts_send(void)
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    if (t == NULL) {
        return;
    }
    send_executable(t);
    send_command_line(t);
    send_working_directory(t);
    send_allocator(t);
    send_string(t, WIRE_TEXT_LIBC, gnu_get_libc_version());
    lane_producer_publish(&t->producer);
    guard_leave(t);
}
