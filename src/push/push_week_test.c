// SPDX-License-Identifier: MIT
// push_week: a week of recording in simulated time: a profile each minute, a state kept each
// hour, a collector that fails for hours and for days. Files and memory stay within their bounds,
// and each profile was sent, is counted as lost, or waits.
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/new_file.h"
#include "push/pusher.h"
#include "recorder/output/rotation.h"

enum {
    STEP_MS = 60000,
    HOUR_MS = 3600000,
    HOURS = 7 * 24,
    STEPS_PER_HOUR = HOUR_MS / STEP_MS,
    PROFILE_BYTES = 600,
    SPOOL_BYTES = 25000, // 41 profiles: 41 minutes
    RECORDING_BYTES = 20000,
    KEPT_BYTES = 200000,
    KEPT_HOURS = 24,
};

static const uint64_t start_unix_ns = UINT64_C(1763914209) * 1000000000u;

struct week {
    char root[64];
    char spool[96];
    char recording[96];
    uint64_t now_ms;
    unsigned made;
    unsigned requests;
};

// The collector fails for the second hour of each six, and from Wednesday to Thursday.
static bool is_down(uint64_t now_ms)
{
    const uint64_t hour = now_ms / HOUR_MS;
    return hour % 6 == 1 || (hour >= 48 && hour < 96);
}

static enum err send(void *context, struct bytes entry, bool is_smaller, struct http_answer *answer)
{
    assert_false(is_smaller);
    struct week *week = context;
    assert_int_equal(entry.len, PROFILE_BYTES);
    week->requests++;
    answer->status = is_down(week->now_ms) ? 503 : 200;
    return ERR_OK;
}

// Return the bytes of all regular files in a folder, and set *count to their number.
static uint64_t bytes_in(const char *folder, size_t *count)
{
    uint64_t bytes = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    *count = 0;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        struct stat status;
        assert_int_equal(fstatat(dirfd(list), entry->d_name, &status, AT_SYMLINK_NOFOLLOW), 0);
        if (S_ISREG(status.st_mode)) {
            bytes += (uint64_t)status.st_size;
            *count += 1;
        }
    }
    (void)closedir(list); // only read
    return bytes;
}

// Write a new state of the recording, as a checkpoint does.
static void write_recording(const struct week *week)
{
    static uint8_t data[RECORDING_BYTES];
    struct err_info info = {0};
    memset(data, (int)(week->now_ms / HOUR_MS), sizeof(data));
    assert_int_equal(file_replace(week->recording, (struct bytes){data, sizeof(data)}, &info),
                     ERR_OK);
}

static void push_for_an_hour(struct week *week, struct pusher *pusher)
{
    static const uint8_t profile[PROFILE_BYTES];
    for (unsigned step = 0; step < STEPS_PER_HOUR; step++, week->now_ms += STEP_MS) {
        assert_true(pusher_is_due(pusher, week->now_ms));
        push_spool_add(&pusher->spool, start_unix_ns + week->now_ms * 1000000u,
                       (struct bytes){profile, PROFILE_BYTES});
        week->made++;
        while (pusher_send(pusher, send, week, week->now_ms, week->made)) {
        }
        assert_true(pusher->spool.bytes <= SPOOL_BYTES);
        assert_true(pusher->spool.entries.cap <= 2 * SPOOL_BYTES / PROFILE_BYTES);
        assert_int_equal(pusher->sent_count + pusher->spool.lost_count + pusher->spool.entries.len,
                         week->made);
    }
}

static void keep_a_state(const struct week *week, struct rotation *rotation)
{
    struct err_info info = {0};
    size_t count = 0;
    write_recording(week);
    assert_true(rotation_is_due(rotation, 0, week->now_ms));
    assert_int_equal(rotation_keep(rotation, start_unix_ns + week->now_ms * 1000000u, &info),
                     ERR_OK);
    assert_true(bytes_in(week->root, &count) <= KEPT_BYTES + RECORDING_BYTES); // + the latest link
    assert_true(count <= KEPT_BYTES / RECORDING_BYTES + 1);
}

static void begin(struct week *week)
{
    (void)snprintf(week->root, sizeof(week->root), "/tmp/push_week_test.XXXXXX"); // fits
    assert_non_null(mkdtemp(week->root));
    (void)snprintf(week->spool, sizeof(week->spool), "%s/spool", week->root);
    (void)snprintf(week->recording, sizeof(week->recording), "%s/server.cairn", week->root);
}

static void remove_files(const char *folder)
{
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        (void)unlinkat(dirfd(list), entry->d_name, 0); // fails for folders
    }
    (void)closedir(list); // only read
    assert_int_equal(rmdir(folder), 0);
}

static void a_week_stays_within_its_bounds(void **state)
{
    struct week week = {.now_ms = HOUR_MS};
    struct err_info info = {0};
    struct pusher pusher = {.interval_ms = STEP_MS, .collect_ms = HOUR_MS};
    struct rotation rotation;
    const struct rotation_options options = {
        .every_ms = HOUR_MS, .keep_ms = (uint64_t)KEPT_HOURS * HOUR_MS, .max_bytes = KEPT_BYTES};
    size_t count = 0;
    (void)state;
    begin(&week);
    assert_int_equal(push_spool_open(week.spool, SPOOL_BYTES, &pusher.spool, &info), ERR_OK);
    assert_int_equal(rotation_init(&rotation, &options, week.recording, &info), ERR_OK);
    for (unsigned hour = 1; hour <= HOURS; hour++) {
        keep_a_state(&week, &rotation);
        push_for_an_hour(&week, &pusher);
        assert_int_equal(bytes_in(week.spool, &count), pusher.spool.bytes);
        assert_int_equal(count, pusher.spool.entries.len);
    }
    assert_int_equal(week.made, HOURS * STEPS_PER_HOUR);
    assert_int_equal(pusher.spool.entries.len, 0); // the collector works at the end
    // Each failure of an hour may cost what the spool does not hold, and those two days what they
    // last; a wait of at most five minutes and an interval come on top.
    const unsigned holds = SPOOL_BYTES / PROFILE_BYTES;
    const unsigned late = PUSH_WAIT_MAX_MS / STEP_MS + 1;
    assert_in_range(pusher.spool.lost_count, 48 * STEPS_PER_HOUR - holds,
                    20 * (STEPS_PER_HOUR + late - holds) + 49 * STEPS_PER_HOUR + late);
    assert_true(week.requests <
                pusher.sent_count + (uint64_t)76 * (STEPS_PER_HOUR / 2)); // it backs off
    push_spool_close(&pusher.spool);
    rotation_release(&rotation);
    remove_files(week.spool);
    remove_files(week.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_week_stays_within_its_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
