// SPDX-License-Identifier: MIT
// Tests of name_cache: whose files are used, which files are removed first beyond the limit, and
// many writers at one time.
#include "symbols/name_cache.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"

static const uint8_t id_bytes[20] = {1, 2, 3};
static const struct bytes build_id = {.data = id_bytes, .len = sizeof(id_bytes)};

struct scene {
    char base[64]; // XDG_CACHE_HOME
    char path[2048];
    struct name_cache cache;
};

static int begin(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    if (scene == NULL) {
        return -1;
    }
    *state = scene;
    (void)snprintf(scene->base, sizeof(scene->base), "/tmp/name_cache_test.XXXXXX");
    if (mkdtemp(scene->base) == NULL || setenv("XDG_CACHE_HOME", scene->base, 1) != 0) {
        return -1;
    }
    return name_cache_init(&scene->cache) == ERR_OK ? 0 : -1;
}

static int end(void **state)
{
    struct scene *scene = *state;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", scene->base);
    name_cache_release(&scene->cache);
    free(scene);
    return system(command);
}

static const char *path_of(struct scene *scene, const char *name)
{
    (void)snprintf(scene->path, sizeof(scene->path), "%s/cairn/%s", scene->base, name);
    return scene->path;
}

static enum err
write_place(const struct name_cache *cache, const struct cache_key *key, uint64_t at)
{
    CLEANUP(string_table_release) struct string_table strings = {0};
    CLEANUP(fresh_names_release) struct fresh_names fresh = {0};
    struct symbol_frame frame = {.line = 7};
    assert_int_equal(string_table_intern_text(&strings, "f", &frame.function), ERR_OK);
    assert_int_equal(fresh_names_add(&fresh, at, 0, &frame, 1), ERR_OK);
    return name_cache_write(cache, key, "/lib/m.so", "/debug/m.so", &fresh, &strings, NULL);
}

static bool has_place(const struct name_cache *cache, const struct cache_key *key, uint64_t at)
{
    CLEANUP(cache_entry_release) struct cache_entry entry = {0};
    struct cached_place place;
    assert_int_equal(name_cache_read(cache, key, &entry), ERR_OK);
    return entry.is_found && cached_names_find(&entry.names, at, &place);
}

static void what_is_written_is_read_by_the_same_build_only(void **state)
{
    struct scene *scene = *state;
    const struct cache_key key = cache_key_of_build_id(build_id);
    struct stat status;
    assert_false(has_place(&scene->cache, &key, 1));
    assert_int_equal(write_place(&scene->cache, &key, 1), ERR_OK);
    assert_int_equal(write_place(&scene->cache, &key, 2), ERR_OK);
    assert_true(has_place(&scene->cache, &key, 1) && has_place(&scene->cache, &key, 2));
    assert_int_equal(stat(path_of(scene, ""), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    scene->cache.reader[0]++;
    assert_false(has_place(&scene->cache, &key, 1));
    assert_int_equal(write_place(&scene->cache, &key, 3), ERR_OK); // and the file is not taken over
    assert_false(has_place(&scene->cache, &key, 1));
    assert_true(has_place(&scene->cache, &key, 3));
}

static void a_file_without_a_build_id_counts_until_it_changes(void **state)
{
    struct scene *scene = *state;
    const struct stat before = {.st_size = 100, .st_mtim = {.tv_sec = 5}};
    const struct stat changes[] = {
        {.st_dev = 1, .st_size = 100, .st_mtim = {.tv_sec = 5}},
        {.st_ino = 1, .st_size = 100, .st_mtim = {.tv_sec = 5}},
        {.st_size = 101, .st_mtim = {.tv_sec = 5}},
        {.st_size = 100, .st_mtim = {.tv_sec = 6}},
        {.st_size = 100, .st_mtim = {.tv_sec = 5, .tv_nsec = 1}},
        {.st_size = 100, .st_mtim = {.tv_sec = 5}, .st_ctim = {.tv_sec = 1}},
        {.st_size = 100, .st_mtim = {.tv_sec = 5}, .st_ctim = {.tv_nsec = 1}},
        {.st_size = 100, .st_mtim = {.tv_sec = 5}, .st_uid = 1},
    };
    const struct cache_key key = cache_key_of_file("/bin/x", &before);
    assert_int_equal(write_place(&scene->cache, &key, 1), ERR_OK);
    assert_true(has_place(&scene->cache, &key, 1));
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        const struct cache_key later = cache_key_of_file("/bin/x", &changes[i]);
        assert_string_equal(key.name, later.name); // it replaces the old file
        assert_false(has_place(&scene->cache, &later, 1));
    }
    const struct cache_key elsewhere = cache_key_of_file("/bin/y", &before);
    assert_false(has_place(&scene->cache, &elsewhere, 1));
}

static void a_file_under_another_name_is_not_believed(void **state)
{
    struct scene *scene = *state;
    const uint8_t other_id[20] = {9};
    const struct cache_key key = cache_key_of_build_id(build_id);
    const struct cache_key other =
        cache_key_of_build_id((struct bytes){.data = other_id, .len = sizeof(other_id)});
    char from[2048];
    assert_int_equal(write_place(&scene->cache, &key, 1), ERR_OK);
    (void)snprintf(from, sizeof(from), "%s", path_of(scene, key.name));
    assert_int_equal(rename(from, path_of(scene, other.name)), 0);
    assert_false(has_place(&scene->cache, &other, 1));
}

static void build_ids_made_up_by_hand_are_not_kept(void **state)
{
    struct scene *scene = *state;
    const struct bytes ids[] = {{.data = id_bytes, .len = 2}, {0}};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct cache_key key = cache_key_of_build_id(ids[i]);
        assert_int_equal(write_place(&scene->cache, &key, 1), ERR_OK);
        assert_false(has_place(&scene->cache, &key, 1));
    }
}

static void a_link_in_the_folder_is_not_followed(void **state)
{
    struct scene *scene = *state;
    const struct cache_key key = cache_key_of_build_id(build_id);
    char real[256];
    assert_int_equal(write_place(&scene->cache, &key, 1), ERR_OK);
    (void)snprintf(real, sizeof(real), "%s/elsewhere", scene->base);
    assert_int_equal(rename(path_of(scene, key.name), real), 0);
    assert_int_equal(symlink(real, path_of(scene, key.name)), 0);
    assert_false(has_place(&scene->cache, &key, 1));
}

// Only root can change the owner of a file.
static void a_file_of_somebody_else_is_not_believed(void **state)
{
    struct scene *scene = *state;
    const struct cache_key key = cache_key_of_build_id(build_id);
    assert_int_equal(write_place(&scene->cache, &key, 1), ERR_OK);
    if (geteuid() == 0) {
        assert_int_equal(chown(path_of(scene, key.name), 12345, 12345), 0);
        assert_false(has_place(&scene->cache, &key, 1));
        assert_int_equal(chown(path_of(scene, key.name), 0, 0), 0);
        assert_int_equal(chown(path_of(scene, ""), 12345, 12345), 0);
        assert_false(has_place(&scene->cache, &key, 1));
    }
}

static void a_folder_that_others_may_write_to_is_not_used(void **state)
{
    struct scene *scene = *state;
    const struct cache_key key = cache_key_of_build_id(build_id);
    assert_int_equal(write_place(&scene->cache, &key, 1), ERR_OK);
    assert_int_equal(chmod(path_of(scene, ""), 0777), 0);
    assert_false(has_place(&scene->cache, &key, 1));
    assert_int_equal(write_place(&scene->cache, &key, 2), ERR_PERMISSION);
}

// Root with another user's HOME; other users cannot try that.
static void nothing_is_made_in_the_folder_of_another_user(void **state)
{
    struct scene *scene = *state;
    const struct cache_key key = cache_key_of_build_id(build_id);
    if (geteuid() == 0) {
        struct stat status;
        assert_int_equal(chown(scene->base, 12345, 12345), 0);
        assert_int_equal(write_place(&scene->cache, &key, 1), ERR_PERMISSION);
        assert_int_not_equal(stat(path_of(scene, ""), &status), 0);
    }
}

static void where_there_can_be_no_folder_nothing_is_kept(void **state)
{
    (void)state;
    static const char *const bases[] = {"/dev/null", "/proc/none/at/all", "relative"};
    const struct cache_key key = cache_key_of_build_id(build_id);
    assert_int_equal(unsetenv("HOME"), 0);
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        CLEANUP(name_cache_release) struct name_cache cache = {0};
        assert_int_equal(setenv("XDG_CACHE_HOME", bases[i], 1), 0);
        assert_int_equal(name_cache_init(&cache), ERR_OK);
        (void)write_place(&cache, &key, 1); // fails with a reason if there is one
        assert_false(has_place(&cache, &key, 1));
    }
}

static void the_oldest_go_first_and_use_renews(void **state)
{
    enum {
        FILES = 5
    };
    struct scene *scene = *state;
    struct cache_key keys[FILES];
    uint64_t file_bytes = 0;
    for (size_t i = 0; i < FILES; i++) {
        const uint8_t id[20] = {(uint8_t)i};
        keys[i] = cache_key_of_build_id((struct bytes){.data = id, .len = sizeof(id)});
        assert_int_equal(write_place(&scene->cache, &keys[i], 1), ERR_OK);
        const struct timespec times[2] = {{.tv_sec = 1000 + (time_t)i},
                                          {.tv_sec = 1000 + (time_t)i}};
        struct stat status;
        assert_int_equal(utimensat(AT_FDCWD, path_of(scene, keys[i].name), times, 0), 0);
        assert_int_equal(stat(scene->path, &status), 0);
        file_bytes = (uint64_t)status.st_size;
    }
    assert_true(has_place(&scene->cache, &keys[0], 1)); // used now
    assert_int_equal(name_cache_limit(&scene->cache), NAME_CACHE_LIMIT_DEFAULT);
    assert_int_equal(name_cache_set_limit(&scene->cache, 3 * file_bytes, NULL), ERR_OK);
    assert_int_equal(name_cache_limit(&scene->cache), 3 * file_bytes);
    static const bool stays[FILES] = {true, false, false, true, true};
    for (size_t i = 0; i < FILES; i++) {
        assert_int_equal(access(path_of(scene, keys[i].name), F_OK) == 0, stays[i]);
    }
    assert_int_equal(write_place(&scene->cache, &keys[1], 1), ERR_OK);
    assert_int_not_equal(access(path_of(scene, keys[3].name), F_OK), 0);
    assert_int_equal(name_cache_set_limit(&scene->cache, 0, NULL), ERR_OK);
    assert_int_equal(write_place(&scene->cache, &keys[1], 1), ERR_OK);
    assert_false(has_place(&scene->cache, &keys[1], 1));
}

static void many_writers_leave_sound_files(void **state)
{
    enum {
        WRITERS = 6,
        TURNS = 40
    };
    struct scene *scene = *state;
    const struct cache_key key = cache_key_of_build_id(build_id);
    pid_t writers[WRITERS];
    for (uint64_t i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        assert_true(writers[i] >= 0);
        if (writers[i] == 0) {
            bool is_sound = true;
            for (uint64_t turn = 0; turn < TURNS; turn++) {
                CLEANUP(cache_entry_release) struct cache_entry entry = {0};
                is_sound = is_sound &&
                           write_place(&scene->cache, &key, i * TURNS + turn) == ERR_OK &&
                           name_cache_read(&scene->cache, &key, &entry) == ERR_OK &&
                           entry.is_found; // some writer's file, whole
            }
            _exit(is_sound ? 0 : 1);
        }
    }
    for (size_t i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_int_equal(status, 0);
    }
    CLEANUP(cache_file_vec_release) struct cache_file_vec files = {0};
    assert_int_equal(name_cache_list(&scene->cache, &files, NULL), ERR_OK);
    assert_int_equal(files.len, 1); // no temporary files
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(what_is_written_is_read_by_the_same_build_only),
        IN_SCENE(a_file_without_a_build_id_counts_until_it_changes),
        IN_SCENE(a_file_under_another_name_is_not_believed),
        IN_SCENE(build_ids_made_up_by_hand_are_not_kept),
        IN_SCENE(a_link_in_the_folder_is_not_followed),
        IN_SCENE(a_file_of_somebody_else_is_not_believed),
        IN_SCENE(a_folder_that_others_may_write_to_is_not_used),
        IN_SCENE(nothing_is_made_in_the_folder_of_another_user),
        IN_SCENE(where_there_can_be_no_folder_nothing_is_kept),
        IN_SCENE(the_oldest_go_first_and_use_renews),
        IN_SCENE(many_writers_leave_sound_files),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
