// SPDX-License-Identifier: MIT
// rotation in a folder of its own, with times that the tests choose.
#include "recorder/output/rotation.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"

#define HOUR_MS    UINT64_C(3600000)
#define DAY_MS     (24 * HOUR_MS)
#define START_NS   UINT64_C(1790000000000000000) // 2026-09-21 14:13:20 UTC
#define FILE_BYTES UINT64_C(65536)

struct place {
    char folder[64];
    char path[96];
};

static struct place enter(void)
{
    struct place place = {.folder = "/tmp/rotation_XXXXXX"};
    assert_non_null(mkdtemp(place.folder));
    (void)snprintf(place.path, sizeof(place.path), "%s/app.cairn", place.folder);
    return place;
}

// Replace a file as a checkpoint does: by another one of that name.
static void write_file(const struct place *place, const char *name, const char *mark)
{
    static char content[FILE_BYTES];
    char path[160];
    char temporary[160];
    (void)snprintf(path, sizeof(path), "%s/%s", place->folder, name);
    (void)snprintf(temporary, sizeof(temporary), "%s/new", place->folder);
    (void)snprintf(content, sizeof(content), "%s", mark);
    CLEANUP(fd_closep) int fd = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, content, sizeof(content)), sizeof(content));
    assert_int_equal(rename(temporary, path), 0);
}

static bool has_file(const struct place *place, const char *name)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", place->folder, name);
    return access(path, F_OK) == 0;
}

// Return how many files there are, and remove them if `removes`.
static unsigned count_files(const struct place *place, bool removes)
{
    unsigned count = 0;
    DIR *folder = opendir(place->folder);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] != '.') {
            count++;
            assert_true(!removes || unlinkat(dirfd(folder), entry->d_name, 0) == 0);
        }
    }
    (void)closedir(folder);
    return count;
}

static void leave(const struct place *place)
{
    (void)count_files(place, true);
    assert_int_equal(rmdir(place->folder), 0);
}

static struct rotation begin(const struct place *place, struct rotation_options options)
{
    struct rotation rotation;
    struct err_info info = {0};
    assert_int_equal(rotation_init(&rotation, &options, place->path, &info), ERR_OK);
    return rotation;
}

static void keep(struct rotation *rotation, uint64_t after_ms)
{
    struct err_info info = {0};
    if (rotation_keep(rotation, START_NS + after_ms * 1000000, &info) != ERR_OK) {
        fail_msg("%s", info.text);
    }
}

static void states_are_due_by_the_growth_of_the_file(void **state)
{
    (void)state;
    const struct place place = enter();
    write_file(&place, "app.cairn", "a killed run");
    struct rotation rotation =
        begin(&place, (struct rotation_options){.every_bytes = FILE_BYTES / 2});
    assert_int_equal(count_files(&place, false), 2);
    write_file(&place, "app.cairn", "first");
    assert_true(rotation_has_grown(&rotation));
    keep(&rotation, 0);
    assert_false(rotation_has_grown(&rotation));
    assert_int_equal(truncate(place.path, (off_t)(FILE_BYTES + FILE_BYTES / 2 - 1)), 0);
    assert_false(rotation_has_grown(&rotation));
    assert_int_equal(truncate(place.path, (off_t)(FILE_BYTES + FILE_BYTES / 2)), 0);
    assert_true(rotation_has_grown(&rotation));
    assert_false(rotation_is_due(&rotation, 0, UINT64_MAX));
    rotation_release(&rotation);

    rotation = begin(&place, (struct rotation_options){.every_ms = HOUR_MS});
    assert_false(rotation_has_grown(&rotation));
    rotation_release(&rotation);
    leave(&place);
}

// A checkpoint replaces what the link leads to.
static void the_file_behind_a_link_is_kept(void **state)
{
    (void)state;
    const struct place place = enter();
    write_file(&place, "real", "a killed run");
    assert_int_equal(symlink("real", place.path), 0);
    struct rotation rotation =
        begin(&place, (struct rotation_options){.every_ms = HOUR_MS, .keep_ms = DAY_MS});
    assert_int_equal(count_files(&place, false), 3);
    for (unsigned i = 0; i < 2; i++) {
        char content[8] = "";
        struct stat status;
        write_file(&place, "real", i == 0 ? "first" : "second");
        keep(&rotation, i * HOUR_MS);
        write_file(&place, "real", "later");
        assert_int_equal(lstat(strbuf_text(&rotation.kept), &status), 0);
        assert_true(S_ISREG(status.st_mode));
        CLEANUP(fd_closep) int fd = open(strbuf_text(&rotation.kept), O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(fd, content, sizeof(content) - 1), sizeof(content) - 1);
        assert_string_equal(content, i == 0 ? "first" : "second");
    }
    rotation_release(&rotation);
    leave(&place);
}

// The recorder's part: a checkpoint ends after three intervals, and the next one that is asked for
// begins then.
static void states_are_kept_if_checkpoints_take_longer_than_the_interval(void **state)
{
    enum {
        SECONDS = 60,
        TAKES = 3,
    };
    (void)state;
    struct place place = enter();
    struct rotation rotation = begin(&place, (struct rotation_options){.every_ms = 1000});
    uint64_t begun = 0;
    uint64_t ended = 0;
    unsigned kept = 0;
    for (unsigned second = 1; second <= SECONDS; second++) {
        if (begun > ended && second % TAKES == 0) {
            ended = begun;
        }
        if (rotation_is_awaited(&rotation, ended)) {
            rotation_settle(&rotation, ended);
            kept++;
        }
        if (rotation_is_due(&rotation, ended, UINT64_C(1000) * second)) {
            rotation_await(&rotation, begun + 1);
        }
        if (begun == ended && rotation.last_awaited > ended) {
            begun++;
        }
    }
    assert_in_range(kept, SECONDS / TAKES - 2, SECONDS / TAKES);
    rotation_release(&rotation);
    leave(&place);
}

static void a_kept_file_stays_as_it_was(void **state)
{
    (void)state;
    const struct place place = enter();
    struct rotation rotation = begin(&place, (struct rotation_options){.every_ms = HOUR_MS});
    char text[16] = "";
    write_file(&place, "app.cairn", "first");
    keep(&rotation, 0);
    write_file(&place, "app.cairn", "second");
    keep(&rotation, 0);
    keep(&rotation, 1000);
    assert_true(has_file(&place, "app.20260921T141320Z.cairn"));
    assert_true(has_file(&place, "app.20260921T141320Z_02.cairn"));
    assert_true(has_file(&place, "app.20260921T141321Z.cairn"));
    assert_int_equal(count_files(&place, false), 4);
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/app.20260921T141320Z.cairn", place.folder);
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    assert_string_equal(text, "first");
    rotation_release(&rotation);
    leave(&place);
}

static void a_week_stays_within_its_bounds(void **state)
{
    (void)state;
    static const struct {
        struct rotation_options options;
        unsigned most; // files
        unsigned at_the_end;
    } cases[] = {
        {{.every_ms = HOUR_MS}, 169, 169}, // each hour, and the recording
        {{.every_ms = HOUR_MS, .keep_ms = DAY_MS}, 26, 26},
        // The recording and the newest kept file are one.
        {{.every_ms = HOUR_MS, .max_bytes = 10 * FILE_BYTES}, 11, 11},
        {{.every_ms = HOUR_MS, .keep_ms = 16 * HOUR_MS, .max_bytes = 30 * FILE_BYTES}, 18, 18},
        {{.every_ms = HOUR_MS, .keep_ms = 2 * HOUR_MS, .max_bytes = 10 * FILE_BYTES}, 11, 11},
        {{.every_ms = HOUR_MS, .keep_ms = 2 * HOUR_MS}, 17, 17}, // pauses are longer than a share
        {{.every_ms = HOUR_MS, .max_bytes = 1}, 1, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct place place = enter();
        struct rotation rotation = begin(&place, cases[i].options);
        unsigned most = 0;
        // The recorder looks each minute; each time the file is new.
        for (uint64_t now_ms = 0; now_ms <= 7 * DAY_MS; now_ms += HOUR_MS / 60) {
            if (rotation_is_due(&rotation, 0, now_ms)) {
                write_file(&place, "app.cairn", "state");
                keep(&rotation, now_ms);
                const unsigned count = count_files(&place, false);
                most = count > most ? count : most;
            }
        }
        const unsigned end = count_files(&place, false);
        if (most != cases[i].most || end != cases[i].at_the_end) {
            fail_msg("case %zu: at most %u, at the end %u files", i, most, end);
        }
        assert_true(has_file(&place, "app.cairn"));
        rotation_release(&rotation);
        leave(&place);
    }
}

// As `record --follow` does: a recording of its own for each run, whose last state is kept.
static void a_week_of_runs_stays_within_its_bounds(void **state)
{
    (void)state;
    static const struct {
        struct rotation_options options;
        unsigned most; // files
    } cases[] = {
        {{.keeps_last = true}, 7 * 48 + 1},
        {{.keeps_last = true, .keep_ms = DAY_MS}, 50}, // a day's, both of its ends, and app.cairn
        {{.keeps_last = true, .max_bytes = 10 * FILE_BYTES}, 11},
        {{.keeps_last = true, .keep_ms = DAY_MS, .max_bytes = 1}, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct place place = enter();
        unsigned most = 0;
        for (uint64_t now_ms = 0; now_ms < 7 * DAY_MS; now_ms += HOUR_MS / 2) {
            struct rotation rotation = begin(&place, cases[i].options);
            write_file(&place, "app.cairn", "a run");
            assert_false(rotation_is_due(&rotation, 0, now_ms)); // only at the end
            keep(&rotation, now_ms);
            rotation_release(&rotation);
            const unsigned count = count_files(&place, false);
            most = count > most ? count : most;
        }
        if (most != cases[i].most) {
            fail_msg("case %zu: at most %u files", i, most);
        }
        assert_true(has_file(&place, "app.cairn"));
        leave(&place);
    }
}

// Keep a state each hour while the clock shows `from_ms` to `until_ms`.
static void keep_hourly(const struct place *place,
                        struct rotation *rotation,
                        uint64_t from_ms,
                        uint64_t until_ms)
{
    for (uint64_t now_ms = from_ms; now_ms <= until_ms; now_ms += HOUR_MS) {
        write_file(place, "app.cairn", "state");
        keep(rotation, now_ms);
    }
}

static void a_wrong_clock_removes_nothing_by_age(void **state)
{
    (void)state;
    enum {
        KEPT_HOURS = 24,
        BEFORE_HOURS = 12,
        WRONG_HOURS = 8,
    };
    static const struct {
        uint64_t jump_hours; // how far the clock is wrong
        bool is_back;
        bool is_new_run;
    } cases[] = {{UINT64_C(30) * 24, false, false},
                 {UINT64_C(30) * 24, false, true},
                 {20, false, true},
                 {20, true, false},
                 {UINT64_C(300) * 24, true, true}};
    const struct rotation_options options = {.every_ms = HOUR_MS, .keep_ms = KEPT_HOURS * HOUR_MS};
    const uint64_t begin_ms = 400 * DAY_MS;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct place place = enter();
        struct rotation rotation = begin(&place, options);
        uint64_t now_ms = begin_ms + BEFORE_HOURS * HOUR_MS;
        keep_hourly(&place, &rotation, begin_ms, now_ms);
        const unsigned before = count_files(&place, false);
        const uint64_t jump_ms = cases[i].jump_hours * HOUR_MS;
        const uint64_t wrong_ms = (cases[i].is_back ? now_ms - jump_ms : now_ms + jump_ms) + 60000;
        if (cases[i].is_new_run) {
            rotation_release(&rotation);
            rotation = begin(&place, options);
        }
        keep_hourly(&place, &rotation, wrong_ms, wrong_ms + WRONG_HOURS * HOUR_MS);
        if (count_files(&place, false) < before + WRONG_HOURS) {
            fail_msg("case %zu: %u of %u files are left", i, count_files(&place, false), before);
        }
        // The clock is right again: what was kept by the wrong one does not hold up the bound.
        now_ms += (WRONG_HOURS + 1) * HOUR_MS;
        keep_hourly(&place, &rotation, now_ms, now_ms + 3 * DAY_MS);
        assert_in_range(count_files(&place, false), KEPT_HOURS, KEPT_HOURS + 2 + WRONG_HOURS + 1);
        rotation_release(&rotation);
        leave(&place);
    }
}

static void a_few_files_stay_whatever_their_age(void **state)
{
    (void)state;
    const struct place place = enter();
    const struct rotation_options options = {.keeps_last = true, .keep_ms = DAY_MS};
    struct rotation rotation = begin(&place, options);
    for (uint64_t day = 0; day < 100; day += 5) { // a run each five days
        write_file(&place, "app.cairn", "a run");
        keep(&rotation, day * DAY_MS);
        const unsigned wanted = day / 5 + 1 < 16 ? (unsigned)(day / 5 + 1) : 16;
        assert_int_equal(count_files(&place, false), wanted + 1);
    }
    rotation_release(&rotation);
    leave(&place);
}

static void other_files_are_never_removed(void **state)
{
    (void)state;
    static const char *const others[] = {
        "app.20200101T000000Z.cairn.gz", "app.20200101T000000Z",   "app.2020010T000000Z.cairn",
        "app.20200101T0000x0Z.cairn",    "app.cairn.events",       "apple.20200101T000000Z.cairn",
        "app20200101T000000Z.cairn",     "20200101T000000Z.cairn", "app.20200101T000000Z_a.cairn"};
    const struct place place = enter();
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        write_file(&place, others[i], "mine");
    }
    write_file(&place, "app.20200101T000000Z.cairn", "old");
    write_file(&place, "app.20200101T000000Z_17.cairn", "old");
    struct rotation rotation =
        begin(&place, (struct rotation_options){.every_ms = HOUR_MS, .keep_ms = 1, .max_bytes = 1});
    write_file(&place, "app.cairn", "state");
    keep(&rotation, 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (!has_file(&place, others[i])) {
            fail_msg("%s was removed", others[i]);
        }
    }
    assert_int_equal(count_files(&place, false), ARRAY_LEN(others) + 1);
    rotation_release(&rotation);
    leave(&place);
}

static void the_last_state_of_a_killed_run_is_kept_once(void **state)
{
    (void)state;
    const struct place place = enter();
    const struct rotation_options options = {.every_ms = HOUR_MS};
    write_file(&place, "app.cairn", "killed");
    for (unsigned i = 0; i < 3; i++) {
        struct rotation rotation = begin(&place, options);
        assert_int_equal(count_files(&place, false), 2);
        rotation_release(&rotation);
    }
    // Without rotation the file is replaced, as ever.
    write_file(&place, "app.cairn", "killed again");
    struct rotation rotation = begin(&place, (struct rotation_options){0});
    assert_int_equal(count_files(&place, false), 2);
    rotation_release(&rotation);
    leave(&place);
}

static void a_file_that_cannot_be_kept_is_reported(void **state)
{
    (void)state;
    const struct place place = enter();
    struct rotation rotation = begin(&place, (struct rotation_options){.every_ms = 1});
    struct err_info info = {0};
    assert_int_equal(rotation_keep(&rotation, START_NS, &info), ERR_NOT_FOUND);
    assert_non_null(strstr(info.text, "app.20260921T141320Z.cairn"));
    rotation_release(&rotation);
    leave(&place);
}

static void a_folder_that_cannot_be_pruned_is_reported(void **state)
{
    (void)state;
    const struct place place = enter();
    struct rotation rotation = begin(&place, (struct rotation_options){.every_ms = 1});
    struct rlimit files;
    struct err_info info = {0};
    write_file(&place, "app.cairn", "state");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0); // a link needs no descriptor
    const enum err err = rotation_keep(&rotation, START_NS, &info);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(err, ERR_IO);
    assert_non_null(strstr(info.text, "cannot look for old recordings beside"));
    assert_int_equal(count_files(&place, false), 2);
    leave(&place);

    // If neither works, why nothing was kept is said.
    assert_int_equal(rotation_keep(&rotation, START_NS, &info), ERR_NOT_FOUND);
    assert_non_null(strstr(info.text, "cannot keep the recording as"));
    rotation_release(&rotation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_that_cannot_be_pruned_is_reported),
        cmocka_unit_test(a_kept_file_stays_as_it_was),
        cmocka_unit_test(states_are_due_by_the_growth_of_the_file),
        cmocka_unit_test(the_file_behind_a_link_is_kept),
        cmocka_unit_test(states_are_kept_if_checkpoints_take_longer_than_the_interval),
        cmocka_unit_test(a_week_stays_within_its_bounds),
        cmocka_unit_test(a_week_of_runs_stays_within_its_bounds),
        cmocka_unit_test(a_wrong_clock_removes_nothing_by_age),
        cmocka_unit_test(a_few_files_stay_whatever_their_age),
        cmocka_unit_test(other_files_are_never_removed),
        cmocka_unit_test(the_last_state_of_a_killed_run_is_kept_once),
        cmocka_unit_test(a_file_that_cannot_be_kept_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
