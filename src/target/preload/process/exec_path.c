// SPDX-License-Identifier: MIT
#include "target/preload/process/exec_path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

// Write /proc/self/fd/FD, and "/path" if there is one. False: it does not fit.
static bool name_of_descriptor(int fd, const char *path, char name[static EXEC_PATH_BYTES_MAX])
{
    static const char folder[] = "/proc/self/fd/";
    size_t at = sizeof(folder) - 1;
    __builtin_memcpy(name, folder, at);
    for (int unit = 1000000000; unit > 0; unit /= 10) {
        if (fd >= unit || unit == 1) {
            name[at++] = (char)('0' + fd / unit % 10);
        }
    }
    const char *rest = path;
    if (*rest != '\0') {
        name[at++] = '/';
    }
    for (; *rest != '\0' && at + 1 < EXEC_PATH_BYTES_MAX; rest++) {
        name[at++] = *rest;
    }
    name[at] = '\0';
    return *rest == '\0';
}

const char *exec_path_of(int folder, const char *path, char name[static EXEC_PATH_BYTES_MAX])
{
    char link[EXEC_PATH_BYTES_MAX];
    if (path == NULL || *path == '/' || folder == AT_FDCWD) {
        return path;
    }
    if (folder < 0 || !name_of_descriptor(folder, path, link)) {
        return NULL;
    }
    const long length = *path == '\0' ? sys_readlink(link, name, EXEC_PATH_BYTES_MAX - 1) : -1;
    if (!sys_failed(length)) {
        name[length] = '\0';
    }
    const bool is_there =
        !sys_failed(length) && !sys_failed(SYS_CALL(SYS_faccessat, AT_FDCWD, (long)name, F_OK));
    if (!is_there) {
        (void)name_of_descriptor(folder, path, name); // it fits, as above
    }
    return name;
}
