// SPDX-License-Identifier: MIT
#include "server/http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"

enum {
    BACKLOG = 1024, // clients beyond it would try again after a second
    HOST_MAX_BYTES = 256,
    OWNER_ONLY = 0177, // the permissions that a socket's file does not get
    LOCK_PATIENCE_MS = 5000,
    LOCK_STEP_MS = 2,
};

// Return whether a process listens on the socket's file.
static bool is_served(const struct sockaddr_un *address)
{
    CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
           errno != ECONNREFUSED;
}

// Lock the folder of a socket's file, so that no two of cairn's processes look at the file, replace
// it and listen at once: a socket that is bound and not listened on yet looks like a dead one.
// Return the lock, or -1 where there is none, or where it is another program's.
static int lock_folder(const char *path)
{
    CLEANUP(strbuf_release) struct strbuf folder = {0};
    strbuf_append(&folder, path, (size_t)(path_file_name(path) - path));
    strbuf_append_char(&folder, '.');
    int fd = strbuf_result(&folder) == ERR_OK
                 ? open(strbuf_text(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : -1;
    const uint64_t end_ms = clock_monotonic_ms() + LOCK_PATIENCE_MS;
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || clock_monotonic_ms() >= end_ms) {
            fd_closep(&fd);
            return -1;
        }
        clock_sleep_ns(LOCK_STEP_MS * NS_PER_MS);
    }
    return fd;
}

static MUST_USE enum err
open_unix(const char *path, struct listener *listener, struct err_info *info)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    const size_t len = strlen(path);
    if (len >= sizeof(address.sun_path)) {
        return err_set(info, ERR_INVALID, "the path of a Unix socket has at most %zu bytes",
                       sizeof(address.sun_path) - 1);
    }
    memcpy(address.sun_path, path, len);
    CLEANUP(fd_closep) int lock = lock_folder(path);
    (void)lock; // held until the end
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode) && !is_served(&address)) {
        (void)unlink(path); // else bind says why
    }
    listener->is_unix = true;
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t mask = umask(OWNER_ONLY); // between bind and chmod others could connect
    const bool is_bound = listener->fd >= 0 && bind(listener->fd, (const struct sockaddr *)&address,
                                                    sizeof(address)) == 0;
    const int problem = errno;
    (void)umask(mask); // cannot fail
    if (!is_bound) {
        return err_set_errno(info, problem, "cannot listen on '%s'", path);
    }
    if (listen(listener->fd, BACKLOG) != 0 || lstat(path, &status) != 0) {
        return err_set_errno(info, errno, "cannot listen on '%s'", path);
    }
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
    strbuf_append_text(&listener->name, path);
    return strbuf_result(&listener->name);
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *ipv4 = (const void *)address;
        return ntohl(ipv4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    const struct sockaddr_in6 *ipv6 = (const void *)address;
    return memcmp(&ipv6->sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)) == 0;
}

// Note where the socket listens.
static MUST_USE enum err note_name(struct listener *listener)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    if (getsockname(listener->fd, (struct sockaddr *)&address, &len) != 0 ||
        getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return ERR_IO;
    }
    listener->is_loopback = is_loopback((struct sockaddr *)&address);
    uint64_t number = 0;
    (void)number_parse(port, UINT16_MAX, &number); // the kernel's
    listener->port = (uint16_t)number;
    strbuf_printf(&listener->name, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return strbuf_result(&listener->name);
}

static MUST_USE enum err bind_tcp(const struct addrinfo *found,
                                  const char *address,
                                  struct listener *listener,
                                  struct err_info *info)
{
    const int yes = 1;
    listener->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    // Allow a port that was in use a moment ago.
    if (listener->fd < 0 ||
        setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(listener->fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(listener->fd, BACKLOG) != 0) {
        return err_set_errno(info, errno, "cannot listen on %.100s", address);
    }
    return note_name(listener) == ERR_OK
               ? ERR_OK
               : err_set(info, ERR_IO, "cannot listen on %.100s", address);
}

static MUST_USE enum err
open_tcp(const char *address, struct listener *listener, struct err_info *info)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const char *colon = strrchr(address, ':');
    char host[HOST_MAX_BYTES] = "";
    const bool is_bracketed = colon != NULL && address[0] == '[' && colon[-1] == ']';
    const char *begin = address + is_bracketed;
    const size_t len = colon != NULL ? (size_t)(colon - begin) - is_bracketed : 0;
    uint64_t port;
    if (len == 0 || len >= sizeof(host) || !number_parse(colon + 1, UINT16_MAX, &port) ||
        (!is_bracketed && memchr(begin, ':', len) != NULL)) {
        return err_set(info, ERR_INVALID,
                       "'%.100s' is not an address; write HOST:PORT, or a path with a slash",
                       address);
    }
    memcpy(host, begin, len);
    struct addrinfo *found = NULL;
    const int problem = getaddrinfo(host, colon + 1, &hints, &found);
    if (problem != 0) {
        return err_set(info, ERR_INVALID, "cannot find the address of '%.100s': %s", host,
                       gai_strerror(problem));
    }
    const enum err err = bind_tcp(found, address, listener, info);
    freeaddrinfo(found);
    return err;
}

enum err listener_open(const char *address, struct listener *out, struct err_info *info)
{
    CLEANUP(listener_release) struct listener listener = {.fd = -1};
    TRY(strchr(address, '/') != NULL ? open_unix(address, &listener, info)
                                     : open_tcp(address, &listener, info));
    *out = listener;
    listener = (struct listener){.fd = -1};
    return ERR_OK;
}

void listener_remove(const struct listener *listener)
{
    struct stat status;
    const char *path = strbuf_text(&listener->name);
    if (listener->is_unix && lstat(path, &status) == 0 && status.st_dev == listener->device &&
        status.st_ino == listener->inode) {
        (void)unlink(path); // a file that stays is replaced by the next recorder
    }
}

void listener_release(struct listener *listener)
{
    fd_closep(&listener->fd);
    strbuf_release(&listener->name);
}
