// SPDX-License-Identifier: MIT
// test_folder: a separate folder for each test that needs files, removed afterwards.
//
// `TEST_IN_FOLDER(f)` replaces cmocka_unit_test(f); *state is the folder for test_path.
// Context: tests only, after cmocka.h.
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct test_folder {
    char path[64];
    char file[384]; // path from the latest test_path
};

static inline int test_folder_make(void **state)
{
    struct test_folder *folder = calloc(1, sizeof(*folder));
    if (folder == NULL) {
        return -1;
    }
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/recording_test.XXXXXX");
    *state = folder;
    return mkdtemp(folder->path) != NULL ? 0 : -1;
}

// Return the path of a file in the folder, valid until the next call.
static inline const char *test_path(void *state, const char *name)
{
    struct test_folder *folder = state;
    (void)snprintf(folder->file, sizeof(folder->file), "%s/%s", folder->path, name);
    return folder->file;
}

static inline size_t test_folder_count(void *state)
{
    struct test_folder *folder = state;
    size_t count = 0;
    DIR *dir = opendir(folder->path);
    for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

static inline int test_folder_remove(void **state)
{
    struct test_folder *folder = *state;
    DIR *dir = opendir(folder->path);
    for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        (void)unlink(test_path(folder, entry->d_name)); // fails for "." and ".."
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    int rc = rmdir(folder->path);
    free(folder);
    return rc;
}

#define TEST_IN_FOLDER(test) \
    cmocka_unit_test_setup_teardown(test, test_folder_make, test_folder_remove)
