// SPDX-License-Identifier: MIT
// page_probe: sees whether the files that a process has mapped can be read, before cairn reads
// them.
//
// The reader of a page of a file system in user space (FUSE) sleeps until that answers, and not
// even SIGKILL wakes it. As a thread of the recorder it would keep the recorder from ending. So a
// child touches the pages first, which shares the memory and is no thread (vfork(2)): its parent
// waits for it, but may be killed. Only files on devices without a number of their own are touched:
// such file systems are among these.
//
// A file system that answers for the first page of a file and not for another one is not seen.
// Context: H, a thread of its own.
#pragma once

#include "base/err.h"

// Touch the mapped files of a process. Comes back once they have answered, perhaps never.
// ERR_NO_MEMORY; a process that has ended is none.
enum err page_probe_touch(int pid) MUST_USE;
