// SPDX-License-Identifier: MIT
// test_entry: runs the command of a ctest entry, or has pytest_server.py run its file of tests, and
// notes the processor time.
//
//   test_entry NAME COMMAND ARGUMENT...
//
// The environment variable CAIRN_ENTRY_TIMES names a file, which gets a line for each entry: name,
// seconds of the entry and of the children that it waited for, in the program and in the kernel.
// Without it the command is executed.
//
// CAIRN_PYTEST_SERVER names the server's abstract socket. It is asked for a COMMAND of the form
// "PYTHON -B -m pytest ARGUMENT...", if it is there. The server gets
//
//   the standard streams, as descriptors
//   number of arguments, folder, arguments, environment, each with a zero byte
//
// and answers with a line: the exit status and both times. If this process is killed, the tests end
// with it.
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PYTEST_WORDS = 4, // PYTHON -B -m pytest
    SIGNALLED = 128,  // is added to a signal's number, as in shells
};

extern char **environ;

struct outcome {
    int status;
    double user_s, system_s;
};

static int connected(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (name == NULL || strlen(name) >= sizeof(address.sun_path)) {
        return -1;
    }
    memcpy(address.sun_path + 1, name, strlen(name)); // abstract: after a zero byte
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, bytes) != 0) {
        return -1;
    }
    return fd;
}

static void put_words(FILE *text, char *const *words)
{
    for (; *words != NULL; words++) {
        (void)fprintf(text, "%s%c", *words, 0);
    }
}

static int send_streams(int fd, char *bytes, size_t count)
{
    const int streams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(streams))];
    } control = {.room = {0}};
    struct iovec part = {.iov_base = bytes, .iov_len = count};
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof(control)};
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(streams));
    memcpy(CMSG_DATA(&control.head), streams, sizeof(streams));
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    return sent == (ssize_t)count && shutdown(fd, SHUT_WR) == 0 ? 0 : -1; // it is a blocking socket
}

static struct outcome ask(int fd, int argc, char **argv)
{
    char folder[PATH_MAX];
    char *bytes = NULL;
    size_t count = 0;
    struct outcome outcome = {.status = 1};
    FILE *text = open_memstream(&bytes, &count);
    FILE *answer = fdopen(fd, "r");
    if (text == NULL || answer == NULL || getcwd(folder, sizeof(folder)) == NULL) {
        perror("test_entry");
        return outcome;
    }
    (void)fprintf(text, "%d%c%s%c", argc - PYTEST_WORDS, 0, folder, 0);
    put_words(text, argv + PYTEST_WORDS);
    put_words(text, environ);
    if (fclose(text) != 0 || send_streams(fd, bytes, count) != 0 ||
        fscanf(answer, "%d %lf %lf", &outcome.status, &outcome.user_s, &outcome.system_s) != 3) {
        (void)fprintf(stderr, "test_entry: the server does not answer\n");
        outcome.status = 1;
    }
    free(bytes);
    (void)fclose(answer); // it was read only
    return outcome;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static int execute(char **argv)
{
    (void)execvp(argv[0], argv);
    perror(argv[0]);
    return 127;
}

// A browser leaves children behind, so all that nothing else waits for become this process's.
static struct outcome run(char **argv)
{
    int status = 0;
    struct rusage used = {0};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); // Linux has it
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // ctest ends only this process
        _exit(execute(argv));
    }
    pid_t ended = 0;
    do {
        int other = 0;
        ended = wait(&other);
        status = ended == child ? other : status;
    } while (ended > 0 && ended != child);
    if (ended < 0) {
        perror("test_entry");
        return (struct outcome){.status = 1};
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    (void)getrusage(RUSAGE_CHILDREN, &used); // it cannot fail
    return (struct outcome){.status = WIFEXITED(status) ? WEXITSTATUS(status)
                                                        : SIGNALLED + WTERMSIG(status),
                            .user_s = seconds(used.ru_utime),
                            .system_s = seconds(used.ru_stime)};
}

static void note(const char *path, const char *name, const struct outcome *outcome)
{
    FILE *file = path == NULL ? NULL : fopen(path, "ae");
    if (file != NULL) {
        (void)fprintf(file, "%s %.3f %.3f\n", name, outcome->user_s, outcome->system_s);
        (void)fclose(file); // a figure for people: no test depends on it
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 2;
    }
    const char *name = argv[1];
    char *times = getenv("CAIRN_ENTRY_TIMES");
    times = times == NULL ? NULL : strdup(times);
    (void)unsetenv("CAIRN_ENTRY_TIMES"); // an entry that runs ctest has its own
    argc -= 2;
    argv += 2;
    const int is_pytest = argc > PYTEST_WORDS && strcmp(argv[PYTEST_WORDS - 1], "pytest") == 0;
    const int fd = is_pytest ? connected(getenv("CAIRN_PYTEST_SERVER")) : -1;
    if (fd < 0 && times == NULL) {
        return execute(argv);
    }
    const struct outcome outcome = fd < 0 ? run(argv) : ask(fd, argc, argv);
    note(times, name, &outcome);
    free(times);
    return outcome.status;
}
