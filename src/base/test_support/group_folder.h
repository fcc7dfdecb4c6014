// SPDX-License-Identifier: MIT
// group_folder: a folder of its own for a group of tests, which is the current one meanwhile. The
// first two functions are setup and teardown of the group; its tests remove their files, and leave
// no descriptor open. Context: tests, after cmocka.h.
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test_support/open_files.h"

static char g_group_folder[] = "/tmp/cairn-test-XXXXXX";

static inline int group_folder_enter(void **state)
{
    return open_files_note(state) == 0 && mkdtemp(g_group_folder) != NULL &&
                   chdir(g_group_folder) == 0
               ? 0
               : -1;
}

static inline int group_folder_leave(void **state)
{
    if (chdir("/") != 0 || rmdir(g_group_folder) != 0) {
        perror(g_group_folder);
        exit(EXIT_FAILURE); // as open_files_expect does
    }
    return open_files_expect(state);
}

// Return how many files a folder has.
static inline size_t group_folder_count(const char *folder)
{
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    size_t count = 0;
    while (readdir(entries) != NULL) {
        count++;
    }
    assert_int_equal(closedir(entries), 0);
    return count - 2; // . and ..
}
