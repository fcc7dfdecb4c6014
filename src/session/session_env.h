// SPDX-License-Identifier: MIT
// session_env: the environment variable by which a process finds its session.
//
// The recorder puts two names into the environment of the program that it starts: LD_PRELOAD, which
// loads the preload library, and CAIRN_SESSION, which locates the session's memory:
//
//     CAIRN_SESSION=/proc/<recorder pid>/fd/<descriptor of the memfd>:<socket name>
//
// The part before the first colon is a path, to be opened read-write. A process may not be able to
// open it: it gave up its user id, or it lives under another root or in another pid namespace. It
// then connects to the abstract Unix stream socket of the given name (sun_path is a zero byte, then
// the name, without a terminator) and receives the memfd as the one descriptor of an SCM_RIGHTS
// message that carries at least one byte. A name that begins with a slash is the path of such a
// socket in the file system, for programs that are executed in another network namespace, where the
// abstract name is unknown (session_door.h). The recorder answers every connection this way and
// then closes it; it decides by SO_PEERCRED which peers may have the memfd. The socket part may be
// omitted together with its colon.
//
// A process reads the value from the environment of its image when it joins, never later. Later
// changes by the program only concern the programs that it starts. Context: T and H.
#pragma once

#define SESSION_ENV_NAME "CAIRN_SESSION"

// printf format of the value: unsigned recorder pid, int descriptor, socket name.
#define SESSION_ENV_FORMAT "/proc/%u/fd/%d:%s"

// Longest value that is accepted, its terminator included.
#define SESSION_ENV_BYTES_MAX 192u

// Longest socket name: sun_path without its leading zero byte.
#define SESSION_SOCKET_NAME_BYTES_MAX 100u
