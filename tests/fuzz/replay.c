// SPDX-License-Identifier: MIT
// replay: a main for fuzz targets in builds without a fuzzer.
//
//   fuzz_x SEED-OR-FOLDER...
//
// Runs the target on nothing, on each seed, on each seed cut at up to 200 places, and with one byte
// changed at up to 2000 places: enough to notice a parser that trusts its input, in a second or
// two, in every test run. `make fuzz-smoke` looks deeper. Fails if a named path cannot be read.
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CUTS_MAX = 200,
    CHANGES_MAX = 2000,
    PATH_BYTES_MAX = 4096,
    SEED_BYTES_MAX = 1 << 20
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t g_runs;

// The target gets a block of exactly the size, so that AddressSanitizer sees one byte too many.
static void run_once(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    g_runs++;
}

static size_t stride_for(size_t size, size_t count)
{
    return size / count + 1;
}

static void run_seed(uint8_t *data, size_t size)
{
    run_once(data, size);
    for (size_t cut = 0; cut < size; cut += stride_for(size, CUTS_MAX)) {
        run_once(data, cut);
    }
    for (size_t place = 0; place < size; place += stride_for(size, CHANGES_MAX)) {
        const uint8_t before = data[place];
        data[place] = place % 3 == 0 ? 0xff : (uint8_t)(before ^ (1u << place % 8));
        run_once(data, size);
        data[place] = before;
    }
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return 1;
    }
    uint8_t *data = malloc(SEED_BYTES_MAX);
    if (data == NULL) {
        abort();
    }
    const size_t size = fread(data, 1, SEED_BYTES_MAX, file);
    fclose(file);
    run_seed(data, size);
    free(data);
    return 0;
}

static int run_folder(const char *path, DIR *folder)
{
    int failures = 0;
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) {
        char name[PATH_BYTES_MAX];
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
            failures += run_file(name);
        }
    }
    return failures;
}

int main(int count, char **arguments)
{
    int failures = 0;
    run_once((const uint8_t *)"", 0);
    for (int i = 1; i < count; i++) {
        DIR *folder = opendir(arguments[i]);
        failures += folder != NULL ? run_folder(arguments[i], folder) : run_file(arguments[i]);
        if (folder != NULL) {
            closedir(folder);
        }
    }
    printf("%zu inputs\n", g_runs);
    return failures > 0;
}
