// SPDX-License-Identifier: MIT
// listener: the socket of a server, from an address as a user writes it.
//
//   /run/cairn.sock   ./cairn.sock      a Unix socket, for its owner only (0600)
//   HOST:PORT   [::1]:PORT              TCP; port 0 is any free port
//
// Binding does not load the HTTP library, so a recorder can report a bad address before it starts
// the program. Context: H. Threads: opening a Unix socket changes the umask for a moment, so no
// other thread may create files then.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/text/strbuf.h"

struct listener {
    int fd;             // owned; -1: none
    bool is_unix;       // only its owner can connect
    bool is_loopback;   // TCP, and other machines cannot reach it
    uint16_t port;      // of TCP
    struct strbuf name; // owned; the path, or HOST:PORT with the port that was chosen
    dev_t device;       // of a Unix socket's file
    ino_t inode;
};

// Bind and listen. A Unix socket that no process serves any more is replaced. ERR_INVALID: not an
// address; ERR_IO: it is in use, or cannot be bound.
enum err listener_open(const char *address, struct listener *out, struct err_info *info) MUST_USE;

// Remove the file of a Unix socket, if it is still the one that was opened.
void listener_remove(const struct listener *listener);
void listener_release(struct listener *listener);
