// SPDX-License-Identifier: MIT
// measure: runs a command and reports the exact cost of each of its processes.
//
//   measure REPORT COMMAND [ARGUMENT]...
//
// A profiler's run is a family of processes: a recorder or a script, the target, compressors. The
// target is often a grandchild, so wait4 cannot separate its share, and polling /proc misses the
// end, where the peaks are. So this program follows the family with ptrace. ptrace stops each
// process once at its birth, at every exec, and at its exit, while its memory and its clocks can
// still be read. Between the stops all processes run at full speed: no system call is traced, and
// threads are not followed. REPORT becomes a JSON object:
//
//   status       the command's exit status, or 128 + its signal
//   wall_ns      from the command's exec until the last process of the family has ended
//   processes    for each: pid, parent, exe, start_ns and end_ns (since the exec of the command),
//                cpu_ns (all threads, with a fork's part before an exec), user_ns and system_ns
//                (whole clock ticks), peak_rss_kib, and rss_{anon,file,shmem}_kib at the end
//
// PTRACE_O_EXITKILL kills the whole family when measure is killed. A process that a thread other
// than the first forks is not seen. Exit status 125 if measure itself fails.

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CANNOT_MEASURE 125
#define PROCESSES_MAX  4096

struct process {
    pid_t pid; // 0: unused entry
    pid_t parent;
    bool alive;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t cpu_ns;
    uint64_t user_ns;
    uint64_t system_ns;
    uint64_t peak_rss_kib;
    uint64_t rss_anon_kib;
    uint64_t rss_file_kib;
    uint64_t rss_shmem_kib;
    char exe[PATH_MAX];
};

struct family {
    struct process processes[PROCESSES_MAX]; // in order of birth; the command is the first
    size_t count;
    uint64_t begin_ns; // exec of the command
    int status;
};

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
    exit(CANNOT_MEASURE);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return 0;
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct process *find_process(struct family *family, pid_t pid)
{
    for (size_t i = family->count; i-- > 0;) {
        if (family->processes[i].pid == pid && family->processes[i].alive) {
            return &family->processes[i];
        }
    }
    return NULL;
}

static struct process *find_or_add_process(struct family *family, pid_t pid)
{
    struct process *process = find_process(family, pid);
    if (process) {
        return process;
    }
    if (family->count == PROCESSES_MAX) {
        errno = E2BIG;
        fail("processes");
    }
    process = &family->processes[family->count++];
    *process = (struct process){.pid = pid, .alive = true, .start_ns = now_ns(CLOCK_MONOTONIC)};
    return process;
}

static size_t read_proc(pid_t pid, const char *name, char *buffer, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, buffer, size - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    size_t len = got < 0 ? 0 : (size_t)got;
    buffer[len] = 0;
    return len;
}

static uint64_t status_field(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

static void read_memory(struct process *process)
{
    char status[8192];
    read_proc(process->pid, "status", status, sizeof(status));
    process->peak_rss_kib = status_field(status, "\nVmHWM:");
    process->rss_anon_kib = status_field(status, "\nRssAnon:");
    process->rss_file_kib = status_field(status, "\nRssFile:");
    process->rss_shmem_kib = status_field(status, "\nRssShmem:");
}

// Read fields 14 and 15 of /proc/PID/stat, counted from behind the name, which may hold any byte.
static void read_ticks(struct process *process)
{
    char stat[1024];
    read_proc(process->pid, "stat", stat, sizeof(stat));
    const char *rest = strrchr(stat, ')');
    uint64_t user = 0;
    uint64_t system = 0;
    if (!rest ||
        sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &system) != 2) {
        return;
    }
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    process->user_ns = user * tick_ns;
    process->system_ns = system * tick_ns;
}

static void read_exe(struct process *process)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
    ssize_t len = readlink(path, process->exe, sizeof(process->exe) - 1);
    process->exe[len < 0 ? 0 : len] = 0;
}

// Read the cost of a process that has stopped at its exit; its address space still exists.
static void take_leave(struct process *process)
{
    clockid_t clock;
    if (clock_getcpuclockid(process->pid, &clock) == 0) {
        process->cpu_ns = now_ns(clock);
    }
    read_memory(process);
    read_ticks(process);
    read_exe(process);
    process->end_ns = now_ns(CLOCK_MONOTONIC);
}

static void resume(pid_t pid, int signal)
{
    if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal) != 0 && errno != ESRCH) {
        fail("continue a process");
    }
}

static void adopt_child(struct family *family, pid_t parent)
{
    unsigned long child = 0;
    if (ptrace(PTRACE_GETEVENTMSG, parent, NULL, &child) == 0) {
        find_or_add_process(family, (pid_t)child)->parent = parent;
    }
}

static void handle_stop(struct family *family, pid_t pid, int status)
{
    struct process *process = find_or_add_process(family, pid);
    int signal = WSTOPSIG(status);
    switch ((unsigned)status >> 16) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
        adopt_child(family, pid);
        signal = 0;
        break;
    case PTRACE_EVENT_EXEC:
        process->start_ns = now_ns(CLOCK_MONOTONIC);
        if (!family->begin_ns) {
            family->begin_ns = process->start_ns;
        }
        signal = 0;
        break;
    case PTRACE_EVENT_EXIT:
        take_leave(process);
        signal = 0;
        break;
    case PTRACE_EVENT_STOP:
        if (signal != SIGTRAP) { // a job control stop lasts until SIGCONT
            (void)ptrace(PTRACE_LISTEN, pid, NULL, NULL);
            return;
        }
        signal = 0; // a new child, or SIGCONT has arrived
        break;
    default: // a signal on its way to the process
        break;
    }
    resume(pid, signal);
}

static void follow(struct family *family, pid_t command)
{
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid < 0 && errno == ECHILD) {
            return;
        }
        if (pid < 0) {
            fail("wait");
        }
        if (WIFSTOPPED(status)) {
            handle_stop(family, pid, status);
            continue;
        }
        struct process *process = find_process(family, pid);
        if (process) {
            process->alive = false;
        }
        if (pid == command) {
            family->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
}

// Start the command, and hold it until it is traced.
static pid_t start(char **command)
{
    int hold[2];
    if (pipe2(hold, O_CLOEXEC) != 0) {
        fail("pipe");
    }
    pid_t pid = fork();
    if (pid < 0) {
        fail("fork");
    }
    if (pid == 0) {
        char go = 0;
        (void)close(hold[1]);
        if (read(hold[0], &go, 1) != 1) {
            _exit(CANNOT_MEASURE);
        }
        execvp(command[0], command);
        (void)fprintf(stderr, "measure: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    (void)close(hold[0]);
    unsigned long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
                            PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) != 0) {
        (void)kill(pid, SIGKILL);
        fail("trace the command (is ptrace allowed here?)");
    }
    if (write(hold[1], "", 1) != 1) {
        fail("release the command");
    }
    (void)close(hold[1]);
    return pid;
}

static void print_json_string(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\' || *p < 0x20) {
            (void)fprintf(out, "\\u%04x", *p);
        } else {
            (void)fputc(*p, out);
        }
    }
    (void)fputc('"', out);
}

static void print_process(FILE *out, const struct process *p, uint64_t begin_ns)
{
    (void)fprintf(out, "{\"pid\": %d, \"parent\": %d, \"exe\": ", (int)p->pid, (int)p->parent);
    print_json_string(out, p->exe);
    (void)fprintf(out,
                  ", \"start_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ", \"cpu_ns\": %" PRIu64
                  ", \"user_ns\": %" PRIu64 ", \"system_ns\": %" PRIu64
                  ", \"peak_rss_kib\": %" PRIu64 ", \"rss_anon_kib\": %" PRIu64
                  ", \"rss_file_kib\": %" PRIu64 ", \"rss_shmem_kib\": %" PRIu64 "}",
                  (int64_t)(p->start_ns - begin_ns), (int64_t)(p->end_ns - begin_ns), p->cpu_ns,
                  p->user_ns, p->system_ns, p->peak_rss_kib, p->rss_anon_kib, p->rss_file_kib,
                  p->rss_shmem_kib);
}

static void write_report(const struct family *family, const char *path, uint64_t end_ns)
{
    FILE *out = fopen(path, "w");
    if (!out) {
        fail(path);
    }
    (void)fprintf(out, "{\"status\": %d, \"wall_ns\": %" PRIu64 ", \"processes\": [",
                  family->status, end_ns - family->begin_ns);
    for (size_t i = 0; i < family->count; i++) {
        (void)fputs(i ? ",\n  " : "\n  ", out);
        print_process(out, &family->processes[i], family->begin_ns);
    }
    (void)fputs("\n]}\n", out);
    if (ferror(out) || fclose(out) != 0) {
        fail(path);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: %s REPORT COMMAND [ARGUMENT]...\n", argv[0]);
        return CANNOT_MEASURE;
    }
    static struct family family;
    pid_t command = start(argv + 2);
    find_or_add_process(&family, command);
    follow(&family, command);
    uint64_t end_ns = now_ns(CLOCK_MONOTONIC);
    if (!family.begin_ns) {
        return 127; // the command could not be executed; the child has printed the reason
    }
    write_report(&family, argv[1], end_ns);
    return 0;
}
