// SPDX-License-Identifier: MIT
// open_files: finds file descriptors that a group of tests left open. The two functions are setup
// and teardown of a group. Context: tests, after cmocka.h.
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

// Return the number of open descriptors.
static inline int open_files_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = -1; // that of `folder`
    for (const struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        (void)closedir(folder); // it was only read
    }
    return count;
}

static int g_open_files;

static inline int open_files_note(void **state)
{
    (void)state;
    g_open_files = open_files_count();
    return g_open_files > 0 ? 0 : -1;
}

static inline int open_files_expect(void **state)
{
    (void)state;
    const int count = open_files_count();
    if (count != g_open_files) {
        (void)fprintf(stderr, "%d descriptors are open, %d before\n", count, g_open_files);
        exit(EXIT_FAILURE); // cmocka counts only tests: a failed teardown of a group is a success
    }
    return 0;
}
