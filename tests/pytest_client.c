// SPDX-License-Identifier: MIT
// pytest_client: has pytest_server.py run a file of tests, or runs the command itself.
//
//   pytest_client PYTHON -B -m pytest ARGUMENT...
//
// The environment variable CAIRN_PYTEST_SERVER names the server's abstract socket. Without it, and
// if there is no server, the command is executed. Else the server gets
//
//   the standard streams, as descriptors
//   number of arguments, folder, arguments, environment, each with a zero byte
//
// and answers with one byte, the exit status. If this process is killed, the tests end with it.
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    OWN_WORDS = 5, // of the command line, before pytest's arguments
};

extern char **environ;

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

// Return the exit status of the tests.
static int ask(int fd, int argc, char **argv)
{
    char folder[PATH_MAX];
    char *bytes = NULL;
    size_t count = 0;
    unsigned char status = 1;
    FILE *text = open_memstream(&bytes, &count);
    if (text == NULL || getcwd(folder, sizeof(folder)) == NULL) {
        perror("pytest_client");
        return 1;
    }
    (void)fprintf(text, "%d%c%s%c", argc - OWN_WORDS, 0, folder, 0);
    put_words(text, argv + OWN_WORDS);
    put_words(text, environ);
    if (fclose(text) != 0 || send_streams(fd, bytes, count) != 0 || read(fd, &status, 1) != 1) {
        (void)fprintf(stderr, "pytest_client: the server does not answer\n");
        status = 1;
    }
    free(bytes);
    return status;
}

int main(int argc, char **argv)
{
    if (argc <= OWN_WORDS) {
        return 2;
    }
    const int fd = connected(getenv("CAIRN_PYTEST_SERVER"));
    if (fd >= 0) {
        return ask(fd, argc, argv);
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
