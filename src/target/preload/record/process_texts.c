// SPDX-License-Identifier: MIT
#include "target/preload/record/process_texts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record_guard.h"
#include "target/producer/entry/lane_entry.h"
#include "target/unwind/unwind.h"

// Weak, as in process.c; here libc has it.
extern const char *gnu_get_libc_version(void) __attribute__((weak));

// The constructor runs once, before any second thread.
static uint8_t g_buffer[WIRE_TEXT_BYTES_MAX];

static void send(struct thread_state *t, enum wire_text_kind kind, const void *text, long len)
{
    if (len > 0) { // errors of the kernel are negative
        const struct bytes bytes = {.data = text, .len = (size_t)len};
        lane_describe(&t->producer, kind, bytes, false);
    }
}

static void send_string(struct thread_state *t, enum wire_text_kind kind, const char *text)
{
    send(t, kind, text, (long)strlen(text));
}

// Write the path behind an open descriptor to g_buffer; return its length, or a negative value.
static long path_of(int fd)
{
    char link[32] = "/proc/self/fd/";
    char *at = link + strlen(link);
    for (int unit = 1000000000; unit > 0; unit /= 10) {
        if (fd >= unit || unit == 1) {
            *at++ = (char)('0' + fd / unit % 10);
        }
    }
    return sys_readlink(link, (char *)g_buffer, sizeof(g_buffer));
}

// Whether `name` is the running file. It is the script if the kernel has started an interpreter,
// and may have been replaced since.
static bool is_what_runs(const char *name)
{
    struct stat named;
    struct stat runs;
    return !sys_failed(SYS_CALL(SYS_newfstatat, AT_FDCWD, (long)name, (long)&named)) &&
           !sys_failed(SYS_CALL(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/exe", (long)&runs)) &&
           named.st_dev == runs.st_dev && named.st_ino == runs.st_ino;
}

// Write the path by which the program was executed to g_buffer: its directory from the kernel, and
// the name, which may be a symbolic link's. Returns the length, or a negative value.
static long find_executed_path(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    const size_t directory_len = (size_t)(base - name);
    const size_t base_len = strlen(base);
    if (directory_len >= sizeof(g_buffer) || base_len == 0) {
        return -1;
    }
    memcpy(g_buffer, directory_len > 0 ? name : ".", directory_len > 0 ? directory_len : 1);
    g_buffer[directory_len > 0 ? directory_len : 1] = '\0';
    const long fd = sys_open((const char *)g_buffer, O_PATH | O_DIRECTORY, 0);
    const long got = sys_failed(fd) ? fd : path_of((int)fd);
    if (!sys_failed(fd)) {
        (void)sys_close((int)fd); // only opened
    }
    if (sys_failed(got) || (size_t)got + 1 + base_len > sizeof(g_buffer)) {
        return -1;
    }
    if (memcmp(g_buffer, "/proc/", 6) == 0) {
        return -1; // /proc/self/exe, /dev/fd/3: a name that only this process has
    }
    size_t len = (size_t)got;
    if (len > 1) { // not "/"
        g_buffer[len++] = '/';
    }
    memcpy(g_buffer + len, base, base_len);
    return (long)(len + base_len);
}

// Find the executable's path. Nearly always it was executed by its own path, which takes one system
// call. If the kernel has started the loader of shared libraries itself (AT_BASE is 0), which then
// puts the program's name into AT_EXECFN, /proc/self/exe is the loader.
static void send_executable(struct thread_state *t)
{
    static const char exe[] = "/proc/self/exe";
    const char *name = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
    const bool is_loaded = getauxval(AT_BASE) != 0;
    long got = sys_readlink(exe, (char *)g_buffer, sizeof(g_buffer));
    const bool is_own_path = is_loaded && name != NULL && !sys_failed(got) &&
                             strlen(name) == (size_t)got &&
                             memcmp(name, g_buffer, (size_t)got) == 0;
    if (!is_own_path && name != NULL && (!is_loaded || is_what_runs(name))) {
        got = find_executed_path(name);
        got = sys_failed(got) ? sys_readlink(exe, (char *)g_buffer, sizeof(g_buffer)) : got;
    }
    send(t, WIRE_TEXT_EXECUTABLE, g_buffer, got);
}

static void send_working_directory(struct thread_state *t)
{
    const long got = SYS_CALL(SYS_getcwd, (long)g_buffer, sizeof(g_buffer)); // counts the zero
    send(t, WIRE_TEXT_WORKING_DIRECTORY, g_buffer, got - 1);
}

// Read ahead by one part, so that each part knows whether another follows.
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
        lane_describe(&t->producer, WIRE_TEXT_COMMAND_LINE, part, ahead > 0);
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
    guard_leave(t);
}
