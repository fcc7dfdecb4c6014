// SPDX-License-Identifier: MIT
#include "cli/doctor/machine_check.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/memory/memory_limit.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "host/text/proc_text.h"

enum {
    TEXT_MAX_BYTES = 64 << 10,
    SYS_PTRACE_BIT = 19, // capabilities(7)
    SECCOMP_FILTER = 2,  // proc_pid_status(5)
    SPACE_MIN_BYTES = 1 << 30,
};

void machine_result_release(struct machine_result *result)
{
    strbuf_release(&result->detail);
}

// Read a file below the root. Return false, with an empty text, if there is none.
static bool read_text(const char *root, const char *path, struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf whole = {0};
    struct err_info info;
    strbuf_clear(out);
    strbuf_printf(&whole, "%s%s", root, path);
    if (strbuf_result(&whole) != ERR_OK ||
        file_read(strbuf_text(&whole), TEXT_MAX_BYTES, out, &info) != ERR_OK) {
        strbuf_clear(out);
        return false;
    }
    while (out->len > 0 && out->data[out->len - 1] == '\n') {
        strbuf_truncate(out, out->len - 1);
    }
    return strbuf_result(out) == ERR_OK;
}

static struct machine_result
answer(enum machine_verdict verdict, const char *detail, const char *cure)
{
    struct machine_result result = {.verdict = verdict, .cure = cure};
    strbuf_append_text(&result.detail, detail);
    return result;
}

// Whether this process may trace a child of its own. A filter or a container may forbid it.
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

static struct machine_result look_at_attaching(const char *root)
{
    if (root[0] == '\0' && !may_trace_child()) {
        return answer(
            MACHINE_FORBIDS,
            "to no process: ptrace is forbidden here (a container, a filter, or a tracer)",
            "for a container: --cap-add SYS_PTRACE; programs that cairn starts need it not");
    }
    CLEANUP(strbuf_release) struct strbuf scope = {0};
    CLEANUP(strbuf_release) struct strbuf status = {0};
    (void)read_text(root, "/proc/self/status", &status); // else it has no capability
    const bool is_mighty =
        (proc_text_mask(strbuf_text(&status), "CapEff") >> SYS_PTRACE_BIT & 1) != 0;
    const bool has_yama = read_text(root, "/proc/sys/kernel/yama/ptrace_scope", &scope);
    const int level = has_yama ? strbuf_text(&scope)[0] - '0' : 0;
    if (level >= 3) {
        return answer(MACHINE_FORBIDS, "no process may be traced (kernel.yama.ptrace_scope is 3)",
                      "remove the setting from /etc/sysctl.d, and boot again; programs that cairn "
                      "starts need it not");
    }
    if (is_mighty) {
        return answer(MACHINE_WORKS, "to each process (CAP_SYS_PTRACE)", NULL);
    }
    if (level == 0) {
        return answer(MACHINE_WORKS, "to your own processes; for others run cairn as root", NULL);
    }
    return answer(MACHINE_FORBIDS,
                  level == 1 ? "only to programs that cairn started (kernel.yama.ptrace_scope is 1)"
                             : "only as root (kernel.yama.ptrace_scope is 2)",
                  "run cairn -p as root, or sudo sysctl kernel.yama.ptrace_scope=0");
}

static struct machine_result look_at_seccomp(const char *root)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    (void)read_text(root, "/proc/self/status", &status); // else there is no filter
    if (proc_text_number(strbuf_text(&status), "Seccomp") != SECCOMP_FILTER) {
        return answer(MACHINE_WORKS, "no filter around cairn", NULL);
    }
    return answer(MACHINE_LACKS, "cairn runs behind a filter, as in a container",
                  "if attaching fails: --security-opt seccomp=unconfined for cairn's container");
}

static struct machine_result look_at_namespace(const char *root)
{
    CLEANUP(strbuf_release) struct strbuf map = {0};
    uint64_t inside = 0;
    uint64_t outside = 0;
    uint64_t count = UINT32_MAX;
    if (read_text(root, "/proc/self/uid_map", &map)) {
        (void)!sscanf(strbuf_text(&map), "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside,
                      &count); // else it is the first one
    }
    if (inside == 0 && outside == 0 && count == UINT32_MAX) {
        return answer(MACHINE_WORKS, "the machine's own", NULL);
    }
    return answer(MACHINE_LACKS, "another one: processes outside of it cannot be attached to",
                  "run cairn outside of the container, as root");
}

static struct machine_result look_at_cgroup(const char *root)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const bool is_new = read_text(root, "/sys/fs/cgroup/cgroup.controllers", &text);
    const bool has_pressure = read_text(root, "/proc/pressure/memory", &text);
    struct machine_result result = {.verdict = has_pressure ? MACHINE_WORKS : MACHINE_LACKS};
    strbuf_printf(&result.detail, "version %s, memory limit %s, %s", is_new ? "2" : "1",
                  format_bytes(memory_limit_here()).text,
                  has_pressure ? "pressure is known" : "pressure is unknown");
    result.cure = has_pressure ? NULL : "boot with psi=1, so that --oom-guard sees stalls as well";
    return result;
}

static struct machine_result look_at_disk(const char *root)
{
    struct statvfs disk;
    (void)root;
    if (statvfs(".", &disk) != 0 || access(".", W_OK) != 0 || (disk.f_flag & ST_RDONLY) != 0) {
        return answer(MACHINE_FORBIDS, "this folder cannot be written to",
                      "name another one with -o");
    }
    const uint64_t bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    struct machine_result result = {MACHINE_WORKS, {0}, NULL};
    strbuf_printf(&result.detail, "%s free in this folder", format_bytes(bytes).text);
    if (bytes < SPACE_MIN_BYTES) {
        result.verdict = MACHINE_LACKS;
        result.cure = "--max-disk bounds what --rotate keeps";
    }
    return result;
}

static struct machine_result look_at_clock(const char *root)
{
    static const char *const fast[] = {"tsc", "kvm-clock", "arch_sys_counter",
                                       "hyperv_clocksource_tsc_page"};
    CLEANUP(strbuf_release) struct strbuf source = {0};
    bool is_fast = false;
    if (!read_text(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                   &source)) {
        return answer(MACHINE_LACKS, "unknown", NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(fast); i++) {
        is_fast = is_fast || strcmp(strbuf_text(&source), fast[i]) == 0;
    }
    return answer(is_fast ? MACHINE_WORKS : MACHINE_LACKS, strbuf_text(&source),
                  is_fast ? NULL
                          : "each reading is a system call: programs that read it often are slow, "
                            "cairn reads it once a millisecond");
}

static struct machine_result look_at_names(const char *root)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    (void)root;
    if (urls != NULL && urls[0] != '\0') {
        return answer(MACHINE_WORKS, "DEBUGINFOD_URLS is set", NULL);
    }
    return answer(MACHINE_LACKS, "DEBUGINFOD_URLS is not set",
                  "export DEBUGINFOD_URLS=https://debuginfod.elfutils.org for lines of system "
                  "libraries, or install their -dbg packages");
}

static struct machine_result look_at_library(const char *file, const char *cure)
{
    void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        struct machine_result missing = {MACHINE_FORBIDS, {0}, cure};
        strbuf_printf(&missing.detail, "%s is not installed", file);
        return missing;
    }
    // libcurl must not be closed, and the process ends soon.
    return answer(MACHINE_WORKS, file, NULL);
}

static struct machine_result look_at_server(const char *root)
{
    (void)root;
    return look_at_library("libmicrohttpd.so.12", "apt install libmicrohttpd12");
}

static struct machine_result look_at_client(const char *root)
{
    (void)root;
    return look_at_library("libcurl.so.4", "apt install libcurl4");
}

const struct machine_check machine_checks[] = {
    {"attaching", look_at_attaching},
    {"seccomp", look_at_seccomp},
    {"user namespace", look_at_namespace},
    {"control group", look_at_cgroup},
    {"disk", look_at_disk},
    {"clock source", look_at_clock},
    {"debuginfod", look_at_names},
    {"--listen, analyze", look_at_server},
    {"--push, store", look_at_client},
};
const size_t machine_check_count = ARRAY_LEN(machine_checks);
