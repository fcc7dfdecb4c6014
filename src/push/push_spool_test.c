// SPDX-License-Identifier: MIT
// push_spool: order, bound and losses, in memory and in a folder; and folders that others changed.
#include "push/push_spool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"

static struct bytes text_bytes(const char *text)
{
    return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static void open_spool(const char *folder, uint64_t max_bytes, struct push_spool *out)
{
    struct err_info info = {0};
    if (push_spool_open(folder, max_bytes, out, &info) != ERR_OK) {
        fail_msg("%s", info.text);
    }
}

// Assert that the oldest entry is the text; NULL: that there is none.
static void assert_oldest(struct push_spool *spool, const char *wanted)
{
    CLEANUP(strbuf_release) struct strbuf got = {0};
    assert_int_equal(push_spool_oldest(spool, &got), wanted != NULL ? ERR_OK : ERR_NOT_FOUND);
    if (wanted != NULL) {
        assert_string_equal(strbuf_text(&got), wanted);
    }
}

static void assert_order_and_bound(const char *folder)
{
    struct push_spool spool;
    open_spool(folder, 10, &spool);
    assert_oldest(&spool, NULL);
    push_spool_add(&spool, 5, text_bytes("aaaa"));
    push_spool_add(&spool, 7, text_bytes("bbbb"));
    push_spool_add(&spool, 6, text_bytes("cc")); // the clock was set back
    assert_int_equal(spool.bytes, 10);
    assert_oldest(&spool, "aaaa");
    push_spool_drop(&spool, false);
    assert_int_equal(spool.lost_count, 0);
    push_spool_add(&spool, 8, text_bytes("ddddd")); // 11 bytes: the oldest goes
    assert_int_equal(spool.lost_count, 1);
    assert_oldest(&spool, "cc");
    push_spool_add(&spool, 9, text_bytes("12345678901")); // never fits
    assert_int_equal(spool.lost_count, 2);
    assert_int_equal(spool.entries.len, 2);
    push_spool_drop(&spool, true);
    assert_int_equal(spool.lost_count, 3);
    assert_oldest(&spool, "ddddd");
    push_spool_drop(&spool, false);
    push_spool_drop(&spool, true); // there is none
    assert_int_equal(spool.lost_count, 3);
    assert_int_equal(spool.bytes, 0);
    push_spool_close(&spool);
}

static void in_memory(void **state)
{
    (void)state;
    assert_order_and_bound(NULL);
}

static void in_a_folder(void **state)
{
    char root[] = "/tmp/push_spool_test.XXXXXX";
    char folder[64];
    (void)state;
    assert_non_null(mkdtemp(root));
    (void)snprintf(folder, sizeof(folder), "%s/a", root);
    assert_order_and_bound(folder);
    assert_int_equal(rmdir(folder), 0); // nothing is left
    assert_int_equal(rmdir(root), 0);
}

static void entries_outlive_the_process_and_the_bound_holds(void **state)
{
    char folder[] = "/tmp/push_spool_test.XXXXXX";
    struct push_spool spool;
    struct push_spool second;
    struct err_info info = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    open_spool(folder, 100, &spool);
    push_spool_add(&spool, 1, text_bytes("one"));
    push_spool_add(&spool, 2, text_bytes("two"));
    push_spool_add(&spool, 3, text_bytes("three"));
    assert_int_equal(push_spool_open(folder, 100, &second, &info), ERR_INVALID);
    assert_non_null(strstr(info.text, "another cairn"));
    push_spool_close(&spool);

    open_spool(folder, 8, &spool); // a smaller bound: the oldest goes
    assert_int_equal(spool.lost_count, 1);
    assert_oldest(&spool, "two");
    push_spool_add(&spool, 0, text_bytes("")); // not older than the others, whatever its time says
    push_spool_drop(&spool, false);
    assert_oldest(&spool, "three");
    push_spool_drop(&spool, false);
    assert_oldest(&spool, "");
    push_spool_drop(&spool, false);
    push_spool_close(&spool);
    assert_int_equal(rmdir(folder), 0);
}

// Leave so much room in the folder: files of this process have at most that many bytes.
static void set_room(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_keeps_one_entry_in_memory(void **state)
{
    char folder[] = "/tmp/push_spool_test.XXXXXX";
    struct push_spool spool;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR); // as the recorder does
    open_spool(folder, 100, &spool);
    push_spool_add(&spool, 1, text_bytes("one"));
    set_room(1);
    push_spool_add(&spool, 2, text_bytes("two"));
    assert_int_equal(spool.lost_count, 0);
    push_spool_add(&spool, 3, text_bytes("three")); // in the place of the second
    assert_int_equal(spool.lost_count, 1);
    assert_int_equal(spool.bytes, 8);
    assert_oldest(&spool, "one");
    push_spool_drop(&spool, false);
    assert_oldest(&spool, "three"); // a collector may take it at once
    set_room(RLIM_INFINITY);
    push_spool_add(&spool, 4, text_bytes("four")); // there is room again
    push_spool_settle(&spool);
    assert_int_equal(spool.lost_count, 1);
    push_spool_close(&spool);

    open_spool(folder, 100, &spool);
    assert_oldest(&spool, "three");
    push_spool_drop(&spool, false);
    assert_oldest(&spool, "four");
    push_spool_drop(&spool, false);
    set_room(1);
    push_spool_add(&spool, 5, text_bytes("five"));
    push_spool_settle(&spool); // still no room
    assert_int_equal(spool.lost_count, 1);
    assert_oldest(&spool, NULL);
    set_room(RLIM_INFINITY);
    push_spool_close(&spool);
    assert_int_equal(rmdir(folder), 0);
}

static void a_folder_that_others_changed(void **state)
{
    char folder[] = "/tmp/push_spool_test.XXXXXX";
    struct push_spool spool;
    const int open_before = open_files_count();
    (void)state;
    assert_non_null(mkdtemp(folder));
    const int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(symlinkat("/etc/passwd", at, "00000000000000000001.push"), 0);
    assert_int_equal(mkdirat(at, "00000000000000000002.push", 0700), 0);
    assert_int_equal(mkfifoat(at, "00000000000000000003.push", 0600), 0);
    assert_int_equal(mkdirat(at, "4.push", 0700), 0);
    open_spool(folder, 100, &spool);
    assert_int_equal(spool.entries.len, 0);
    push_spool_add(&spool, 7, text_bytes("seven"));
    push_spool_add(&spool, 8, text_bytes("eight"));
    assert_int_equal(unlinkat(at, "00000000000000000007.push", 0), 0); // somebody removes it
    assert_oldest(&spool, "eight");
    assert_int_equal(spool.lost_count, 1);
    push_spool_drop(&spool, false);
    assert_int_equal(fchmod(at, 0700), 0);
    assert_int_equal(mkdirat(at, "new", 0700), 0); // no entry can be written
    push_spool_add(&spool, 9, text_bytes("nine"));
    assert_int_equal(spool.lost_count, 1);
    push_spool_settle(&spool);
    assert_int_equal(spool.lost_count, 2);
    assert_oldest(&spool, NULL);
    push_spool_close(&spool);
    static const char *const names[] = {"00000000000000000001.push", "00000000000000000003.push"};
    static const char *const folders[] = {"00000000000000000002.push", "4.push", "new"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(unlinkat(at, names[i], 0), 0); // they are still there
    }
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        assert_int_equal(unlinkat(at, folders[i], AT_REMOVEDIR), 0);
    }
    assert_int_equal(close(at), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(open_files_count(), open_before);
}

// The next entry is written past what is there: a pipe would not end, a file may have other names.
static void the_unfinished_entry_is_a_new_file(void **state)
{
    char folder[] = "/tmp/push_spool_test.XXXXXX";
    char byte;
    struct push_spool spool;
    (void)state;
    assert_non_null(mkdtemp(folder));
    const int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int victim = openat(at, "victim", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(victim, "v", 1), 1);
    assert_int_equal(linkat(at, "victim", at, "new", 0), 0);
    open_spool(folder, 100, &spool);
    push_spool_add(&spool, 1, text_bytes("one"));
    assert_int_equal(mkfifoat(at, "new", 0600), 0);
    push_spool_add(&spool, 2, text_bytes("two"));
    assert_int_equal(spool.lost_count, 0);
    assert_int_equal(pread(victim, &byte, 1, 0), 1);
    assert_oldest(&spool, "one");
    push_spool_drop(&spool, false);
    assert_oldest(&spool, "two");
    push_spool_drop(&spool, false);
    push_spool_close(&spool);
    assert_int_equal(unlinkat(at, "victim", 0), 0);
    assert_int_equal(close(victim) + close(at) + rmdir(folder), 0);
}

// Only root can have a stranger.
static void another_users_folder_in_a_public_one_is_refused(void **state)
{
    char folder[] = "/tmp/push_spool_test.XXXXXX";
    char inner[sizeof(folder) + 2];
    const bool is_root = geteuid() == 0;
    struct push_spool spool = {.folder = -1};
    struct err_info info = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(inner, sizeof(inner), "%s/s", folder); // fits
    assert_int_equal(chmod(folder, 01777) + mkdir(inner, 0777), 0);
    assert_int_equal(is_root ? chown(inner, 65534, 65534) : 0, 0);
    assert_int_equal(push_spool_open(inner, 100, &spool, &info), is_root ? ERR_PERMISSION : ERR_OK);
    push_spool_close(&spool);
    assert_int_equal(rmdir(inner) + rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),
        cmocka_unit_test(in_a_folder),
        cmocka_unit_test(entries_outlive_the_process_and_the_bound_holds),
        cmocka_unit_test(a_full_disk_keeps_one_entry_in_memory),
        cmocka_unit_test(a_folder_that_others_changed),
        cmocka_unit_test(the_unfinished_entry_is_a_new_file),
        cmocka_unit_test(another_users_folder_in_a_public_one_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
