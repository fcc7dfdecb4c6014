// SPDX-License-Identifier: MIT
#include "host/os/litter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"

enum {
    OLD_S = 60 // the process may run on another machine, or in an invisible namespace
};

// Return the pid in "BASE.PID-N.tmp", 0 for any other name.
static long pid_in(const char *name, const char *base)
{
    const size_t length = strlen(base);
    long pid = 0;
    unsigned number = 0;
    int end = 0;
    const bool is_one = strncmp(name, base, length) == 0 &&
                        sscanf(name + length, ".%10ld-%9u.tmp%n", &pid, &number, &end) == 2 &&
                        end > 0 && name[length + (size_t)end] == '\0';
    return is_one && pid > 0 ? pid : 0;
}

static bool is_old(int folder, const char *name)
{
    struct stat status;
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
           status.st_mtime + OLD_S <= time(NULL);
}

void litter_remove(const char *path)
{
    CLEANUP(text_freep) char *folder_of = strdup(path);
    CLEANUP(text_freep) char *base_of = strdup(path);
    if (folder_of == NULL || base_of == NULL) {
        return;
    }
    const char *base = basename(base_of); // the POSIX function: may write into its argument
    CLEANUP(directory_closep) DIR *folder = opendir(dirname(folder_of));
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const long pid = pid_in(entry->d_name, base);
        if (pid != 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
            is_old(dirfd(folder), entry->d_name)) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0); // on failure it stays
        }
    }
}
