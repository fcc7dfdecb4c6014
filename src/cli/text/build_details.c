// SPDX-License-Identifier: MIT
// build_details: see build_details.h.
//
// The libraries that cairn loads by name are loaded here too, and stay loaded. What the kernel
// permits follows from its own rules (ptrace(2), "Ptrace access mode checking"), and from a child
// that is traced for a moment: a seccomp filter or a container may forbid ptrace altogether.
#include "cli/text/build_details.h"

#include <curses.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"

enum {
    CAPABILITY_PTRACE = 19, // capabilities(7), CAP_SYS_PTRACE
    FILE_MAX_BYTES = 65536,
};

static void print_detail(const char *name, const char *value)
{
    (void)printf("%-15s %s\n", name, value); // the caller checks stdout
}

static const char *pcre2_version(void)
{
    static char text[64];
    return pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof(text) &&
                   pcre2_config(PCRE2_CONFIG_VERSION, text) > 0
               ? text
               : "?";
}

static void print_libraries(void)
{
    static const struct {
        const char *name;
        const char *file;
        const char *version; // a function without parameters; NULL: none
        const char *use;
    } loaded[] = {
        {"libmicrohttpd", "libmicrohttpd.so.12", "MHD_get_version", "analyze, --listen"},
        {"libcurl", "libcurl.so.4", "curl_version", "requests to other servers"},
        {"libdebuginfod", "libdebuginfod.so.1", NULL, "DEBUGINFOD_URLS"},
    };
    print_detail("elfutils", dwfl_version(NULL));
    print_detail("zstd", ZSTD_versionString());
    print_detail("zlib", zlibVersion());
    print_detail("pcre2", pcre2_version());
    print_detail("sqlite", sqlite3_libversion());
    print_detail("jansson", jansson_version_str());
    print_detail("ncurses", curses_version());
    for (size_t i = 0; i < ARRAY_LEN(loaded); i++) {
        void *library = dlopen(loaded[i].file, RTLD_NOW | RTLD_LOCAL);
        const char *(*version)(void) = NULL;
        if (library != NULL && loaded[i].version != NULL) {
            *(void **)&version = dlsym(library, loaded[i].version);
        }
        const char *text = library == NULL ? "missing" : version != NULL ? version() : "installed";
        (void)printf("%-15s %.*s (%s)\n", loaded[i].name, (int)strcspn(text, " "), text,
                     loaded[i].use);
    }
}

// Whether this process may trace a child of its own.
static bool may_trace_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // else it waits until it is killed below
        for (;;) {
            (void)pause();
        }
    }
    if (child < 0) {
        return false;
    }
    const bool is_traced = ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0); // its end is certain
    return is_traced;
}

static bool has_capability(int number)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    const bool is_read = file_read("/proc/self/status", FILE_MAX_BYTES, &status, NULL) == ERR_OK;
    const char *value = is_read ? proc_text_value(strbuf_text(&status), "CapEff") : NULL;
    uint64_t held = 0;
    value = value != NULL ? value + strspn(value, "\t ") : NULL;
    return value != NULL && number_take(&value, 16, &held) && (held >> number & 1) != 0;
}

static const char *attachable(void)
{
    CLEANUP(strbuf_release) struct strbuf scope = {0};
    const bool has_yama =
        file_read("/proc/sys/kernel/yama/ptrace_scope", 64, &scope, NULL) == ERR_OK;
    const unsigned long yama = has_yama ? number_field(strbuf_text(&scope)) : 0;
    if (!may_trace_child()) {
        return "no process: ptrace is forbidden here (a container, a seccomp filter, or a tracer)";
    }
    if (yama >= 3) {
        return "no running process (kernel.yama.ptrace_scope is 3)";
    }
    if (has_capability(CAPABILITY_PTRACE)) {
        return "the processes of all users";
    }
    return yama == 0 ? "the processes of this user"
                     : "no running process without root (kernel.yama.ptrace_scope)";
}

void build_details_print(void)
{
    struct utsname kernel = {0};
    (void)uname(&kernel); // an error leaves empty texts
    (void)printf("%-15s %s, %s\n", "compiler", __VERSION__, kernel.machine);
    (void)printf("%-15s glibc %s\n", "libc", gnu_get_libc_version());
    (void)printf("%-15s %s %s\n", "kernel", kernel.sysname, kernel.release);
    print_libraries();
    print_detail("attaches to", attachable());
}
