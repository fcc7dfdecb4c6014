// SPDX-License-Identifier: MIT
// session_env: how a process learns where its session is.
//
// The recorder puts two names into the environment of the program that it starts: LD_PRELOAD, which
// brings in the preload library, and CAIRN_SESSION, which says where the session's memory is:
//
//     CAIRN_SESSION=/proc/<recorder pid>/fd/<descriptor of the memfd>:<socket name>
//
// The part before the first colon is a path and is opened read-write. A process that may not open
// it (it gave up its user id, lives under another root, or in another pid namespace) connects to
// the abstract Unix stream socket of the given name (sun_path is a zero byte, then the name,
// without a terminator) and receives the memfd as the one descriptor of an SCM_RIGHTS message that
// carries at least one byte. A name that begins with a slash is the path of such a socket in the
// file system: programs that are executed in another network namespace, where the abstract name
// means nothing, are given that (session_door.h). The recorder answers every connection so and then
// closes it; who may have the memfd is for the recorder to judge, by SO_PEERCRED. The socket part
// may be left out with its colon.
//
// The value is read from the environment of the image when it joins, never later; what the program
// does to it afterwards only concerns the programs that it starts. Context: T and H.
#pragma once

#define SESSION_ENV_NAME "CAIRN_SESSION"

// printf format of the value: unsigned recorder pid, int descriptor, socket name.
#define SESSION_ENV_FORMAT "/proc/%u/fd/%d:%s"

// Longest value that is understood, its terminator included.
#define SESSION_ENV_BYTES_MAX 192u

// Longest socket name: sun_path without its leading zero byte.
#define SESSION_SOCKET_NAME_BYTES_MAX 100u
