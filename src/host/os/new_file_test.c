// SPDX-License-Identifier: MIT
#include "host/os/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/group_folder.h"
#include "host/os/file.h"

// Whether the file system supports nameless files. Replaces the C library's open().
static bool g_has_nameless = true;

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const bool creates = (flags & (O_CREAT | __O_TMPFILE)) != 0;
    const mode_t mode = creates ? va_arg(more, mode_t) : 0;
    va_end(more);
    if ((flags & __O_TMPFILE) != 0 && !g_has_nameless) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return openat(AT_FDCWD, path, flags, mode);
}

static int refuse_nameless(void **state)
{
    (void)state;
    g_has_nameless = false;
    return 0;
}

static int allow_nameless(void **state)
{
    (void)state;
    g_has_nameless = true;
    return 0;
}

static void assert_content(const char *path, const char *want)
{
    CLEANUP(strbuf_release) struct strbuf got = {0};
    assert_int_equal(file_read(path, 1000, &got, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&got), want);
}

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

static void replacing_shows_the_old_or_the_new_content(void **state)
{
    (void)state;
    assert_int_equal(file_replace("f", bytes_of("old"), NULL), ERR_OK);
    struct replacement r = {0};
    assert_int_equal(replacement_begin(&r, "f", FILE_MODE_BY_UMASK, NULL), ERR_OK);
    assert_true(fcntl(fileno(r.stream), F_GETFD) & FD_CLOEXEC);
    assert_true(fputs("new", r.stream) >= 0);
    assert_int_equal(fflush(r.stream), 0);
    assert_content("f", "old");
    assert_int_equal(group_folder_count("."), g_has_nameless ? 1 : 2);
    assert_int_equal(replacement_commit(&r, true, NULL), ERR_OK);
    assert_content("f", "new");
    replacement_abandon(&r);
    assert_content("f", "new");

    assert_int_equal(replacement_begin(&r, "f", FILE_MODE_BY_UMASK, NULL), ERR_OK);
    assert_true(fputs("never", r.stream) >= 0);
    replacement_abandon(&r);
    assert_content("f", "new");
    assert_int_equal(group_folder_count("."), 1);
    assert_int_equal(unlink("f"), 0);
}

// Write through whatever is at the path, as an export does.
static enum err write_to(const char *path, const char *text, struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement r = {0};
    TRY(replacement_begin(&r, path, FILE_MODE_BY_UMASK, info));
    assert_true(fputs(text, r.stream) >= 0);
    return replacement_commit(&r, false, info);
}

static void what_is_no_file_is_written_to_as_it_is(void **state)
{
    (void)state;
    char got[8] = "";
    struct stat status;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int reader = open("pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(write_to("pipe", "text", NULL), ERR_OK);
    assert_int_equal(read(reader, got, sizeof(got)), 4);
    assert_string_equal(got, "text");
    assert_int_equal(stat("pipe", &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_int_equal(group_folder_count("."), 1);
    close(reader);
    assert_int_equal(unlink("pipe"), 0);
}

static void a_link_stays_one(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(file_replace("f", bytes_of("old"), NULL), ERR_OK);
    assert_int_equal(symlink("f", "link"), 0);
    assert_int_equal(file_replace("link", bytes_of("new"), NULL), ERR_OK);
    assert_content("f", "new");
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(group_folder_count("."), 2);
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(unlink("f"), 0);
}

static void the_mode_follows_the_umask(void **state)
{
    (void)state;
    mode_t before = umask(027);
    assert_int_equal(file_replace("f", bytes_of(""), NULL), ERR_OK);
    (void)umask(before);
    struct stat status;
    assert_int_equal(stat("f", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(unlink("f"), 0);
}

static struct stat made_with(mode_t mode)
{
    struct replacement r = {0};
    struct stat status;
    assert_int_equal(replacement_begin(&r, "f", mode, NULL), ERR_OK);
    assert_int_equal(fstat(fileno(r.stream), &status), 0);
    assert_int_equal(status.st_mode & 0777 & ~mode, 0); // never more, not even at first
    assert_int_equal(replacement_commit(&r, false, NULL), ERR_OK);
    assert_int_equal(stat("f", &status), 0);
    assert_int_equal(unlink("f"), 0);
    return status;
}

static void a_mode_that_is_asked_for_holds_whatever_the_umask(void **state)
{
    (void)state;
    static const mode_t modes[] = {FILE_MODE_PRIVATE, 0640, 0644, 0666};
    static const mode_t umasks[] = {0, 022, 077};
    for (size_t i = 0; i < ARRAY_LEN(modes) * ARRAY_LEN(umasks); i++) {
        mode_t before = umask(umasks[i % ARRAY_LEN(umasks)]);
        const mode_t mode = modes[i / ARRAY_LEN(umasks)];
        assert_int_equal(made_with(mode).st_mode & 0777, mode);
        (void)umask(before);
    }
}

static void under_sudo_a_file_is_who_called_its(void **state)
{
    (void)state;
    enum {
        CALLER = 65534
    };
    assert_int_equal(setenv("SUDO_UID", "65534", 1) + setenv("SUDO_GID", "65534", 1), 0);
    assert_int_equal(made_with(FILE_MODE_PRIVATE).st_uid, geteuid() == 0 ? CALLER : geteuid());
    assert_int_equal(setenv("SUDO_UID", "65534x", 1), 0); // sudo never writes this
    assert_int_equal(made_with(FILE_MODE_PRIVATE).st_uid, geteuid());
    assert_int_equal(unsetenv("SUDO_UID") + unsetenv("SUDO_GID"), 0);
    assert_int_equal(made_with(FILE_MODE_PRIVATE).st_uid, geteuid());
}

// Only root can create another user's link; other users check that their own links are followed
// there.
static void a_strangers_link_is_not_followed_where_anybody_writes(void **state)
{
    (void)state;
    const bool is_root = geteuid() == 0;
    struct err_info info = {0};
    assert_int_equal(mkdir("public", 0777) + chmod("public", 01777), 0);
    assert_int_equal(file_replace("f", bytes_of("old"), NULL), ERR_OK);
    assert_int_equal(symlink("../f", "public/own"), 0);
    assert_int_equal(symlink(is_root ? "../f" : "own", "public/theirs"), 0);
    assert_int_equal(symlink("public/theirs", "private"), 0);
    assert_true(!is_root || lchown("public/theirs", 65534, 65534) == 0);
    assert_int_equal(file_replace("public/own", bytes_of("new"), NULL), ERR_OK);
    assert_content("f", "new");
    static const char *const names[] = {"public/theirs", "private"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(file_replace(names[i], bytes_of("bad"), &info),
                         is_root ? ERR_PERMISSION : ERR_OK);
        assert_true(!is_root || strstr(info.text, "another user") != NULL);
        assert_content("f", is_root ? "new" : "bad");
    }
    assert_int_equal(unlink("public/own") + unlink("public/theirs") + unlink("private"), 0);
    assert_int_equal(rmdir("public") + unlink("f"), 0);
}

// Without a reader, to open the pipe for writing would never end.
static void a_file_that_is_read_again_must_be_a_regular_one(void **state)
{
    (void)state;
    char link[32];
    struct err_info info = {0};
    CLEANUP(fd_closep) int fd = open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    assert_int_equal(mkfifo("pipe", 0600) + symlink("pipe", "link") + mkdir("folder", 0700), 0);
    const char *const paths[] = {"pipe", "link", "/dev/null", link, "folder"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct replacement r = {0};
        const bool is_last = i + 1 == ARRAY_LEN(paths);
        assert_int_equal(file_replace(paths[i], bytes_of("text"), &info),
                         is_last ? ERR_IO : ERR_INVALID);
        assert_non_null(strstr(info.text, paths[i]));
        assert_non_null(strstr(info.text, is_last ? "Is a directory" : "it is no regular file"));
        assert_true(is_last || replacement_begin_regular(&r, paths[i], FILE_MODE_PRIVATE, &info) ==
                                   ERR_INVALID);
        assert_null(r.stream);
    }
    assert_content("log", "");
    assert_int_equal(group_folder_count("."), 4);
    assert_int_equal(unlink("pipe") + unlink("link") + rmdir("folder") + unlink("log"), 0);
}

// The same for other files that wait there for a writer. A pipe of the user himself has a reader.
static void a_strangers_pipe_is_not_opened_where_anybody_writes(void **state)
{
    (void)state;
    const bool is_root = geteuid() == 0;
    struct err_info info = {0};
    int fd = -1;
    assert_int_equal(mkdir("public", 0777) + chmod("public", 01777), 0);
    assert_int_equal(mkfifo("public/pipe", 0666) + mkdir("public/folder", 0777), 0);
    CLEANUP(fd_closep) int reader = open("public/pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(write_to("public/pipe", "own", &info), ERR_OK);
    assert_int_equal(file_refuse_planted("public/folder", &info), ERR_OK);
    if (is_root) {
        assert_int_equal(chown("public/pipe", 65534, 65534), 0);
        assert_int_equal(chown("public/folder", 65534, 65534), 0);
        fd_closep(&reader); // to open it would never end
        assert_int_equal(write_to("public/pipe", "bad", &info), ERR_PERMISSION);
        assert_string_equal(info.text, "'public/pipe' is a pipe that another user has put there");
        assert_int_equal(file_create("public/pipe", FILE_MODE_PRIVATE, &fd, &info), ERR_PERMISSION);
        assert_int_equal(file_create_missing("public/pipe", FILE_MODE_PRIVATE, &info),
                         ERR_PERMISSION);
        assert_int_equal(file_refuse_planted("public/folder", &info), ERR_PERMISSION);
        assert_non_null(strstr(info.text, "is a directory that another user"));
    }
    assert_int_equal(fd, -1);
    assert_int_equal(unlink("public/pipe") + rmdir("public/folder") + rmdir("public"), 0);
}

// Settings, tokens and keys: of another user not even a regular file, but of the caller of sudo.
static void what_is_obeyed_is_no_strangers_where_anybody_writes(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct err_info info = {0};
    const bool is_root = geteuid() == 0;
    assert_int_equal(file_read_trusted("public/file", 100, &text, &info), ERR_NOT_FOUND);
    assert_int_equal(mkdir("public", 0777) + chmod("public", 01777), 0);
    assert_int_equal(file_replace("public/file", bytes_of("own"), &info), ERR_OK);
    assert_int_equal(mkfifo("public/pipe", 0666) + symlink("file", "public/link"), 0);
    assert_int_equal(file_read_trusted("public/link", 100, &text, &info), ERR_OK);
    assert_string_equal(strbuf_text(&text), "own");
    static const char *const names[][2] = {
        {"public/file", "'public/file' is a file that another user has put there"},
        {"public/link", "'public/link' is a symbolic link that another user has put there"},
        {"public/pipe", "'public/pipe' is a pipe that another user has put there"},
    };
    for (size_t i = 0; is_root && i < ARRAY_LEN(names); i++) {
        assert_int_equal(lchown(names[i][0], 65534, 65534), 0);
        assert_int_equal(file_read_trusted(names[i][0], 100, &text, &info), ERR_PERMISSION);
        assert_string_equal(info.text, names[i][1]);
    }
    if (is_root) {
        assert_int_equal(setenv("SUDO_UID", "65534", 1), 0);
        assert_int_equal(file_read_trusted("public/file", 100, &text, &info), ERR_OK);
        assert_int_equal(unsetenv("SUDO_UID") + chmod("public", 0755), 0);
        assert_int_equal(file_read_trusted("public/file", 100, &text, &info), ERR_OK);
    }
    assert_int_equal(unlink("public/file") + unlink("public/pipe") + unlink("public/link"), 0);
    assert_int_equal(rmdir("public"), 0);
}

static void a_created_file_takes_a_place_and_no_content(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(file_replace("victim", bytes_of("old"), NULL), ERR_OK);
    assert_int_equal(link("victim", "f"), 0);
    assert_int_equal(file_create("f", FILE_MODE_PRIVATE, &fd, NULL), ERR_OK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(file_write_all(fd, bytes_of("one"), "f", NULL), ERR_OK);
    assert_int_equal(ftruncate(fd, 0), 0); // as who rotates it does
    assert_int_equal(file_write_all(fd, bytes_of("two"), "f", NULL), ERR_OK);
    assert_content("f", "two");
    assert_content("victim", "old");
    fd_closep(&fd);
    assert_int_equal(file_create_missing("f", FILE_MODE_PRIVATE, NULL), ERR_OK);
    assert_content("f", "two");
    assert_int_equal(symlink("new", "link"), 0);
    assert_int_equal(file_create_missing("link", FILE_MODE_PRIVATE, NULL), ERR_OK);
    assert_content("new", "");
    assert_int_equal(unlink("f") + unlink("victim") + unlink("new") + unlink("link"), 0);
}

static void links_in_a_circle_end(void **state)
{
    (void)state;
    struct err_info info = {0};
    assert_int_equal(symlink("two", "one") + symlink("one", "two"), 0);
    assert_int_not_equal(file_replace("one", bytes_of("x"), &info), ERR_OK);
    assert_int_equal(info.errno_value, ELOOP);
    assert_int_equal(unlink("one") + unlink("two"), 0);
}

static void a_full_disk_keeps_the_old_content(void **state)
{
    (void)state;
    assert_int_equal(file_replace("f", bytes_of("old"), NULL), ERR_OK);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 10, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct err_info info = {0};
    enum err at_once = file_replace("f", bytes_of("more than ten bytes"), &info);
    struct replacement r = {0};
    enum err begun = replacement_begin(&r, "f", FILE_MODE_BY_UMASK, NULL);
    bool noticed = fputs("more than ten bytes", r.stream) < 0 || fflush(r.stream) != 0;
    enum err later = replacement_commit(&r, false, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(at_once, ERR_IO);
    assert_int_equal(info.errno_value, EFBIG);
    assert_int_equal(begun, ERR_OK);
    assert_true(noticed);
    assert_int_equal(later, ERR_IO);
    assert_content("f", "old");
    assert_int_equal(group_folder_count("."), 1);
    assert_int_equal(unlink("f"), 0);
}

// So a process that is killed while writing a new file leaves no other name.
static void a_new_file_has_one_name_only(void **state)
{
    (void)state;
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, ".", IN_CREATE | IN_MOVED_TO) >= 0);
    const struct bytes text = {.data = (const uint8_t *)"new", .len = 3};
    assert_int_equal(file_replace("f", text, NULL), ERR_OK);
    _Alignas(struct inotify_event) char events[4096];
    const ssize_t got = read(watch, events, sizeof(events));
    const struct inotify_event *event = (const void *)events;
    assert_int_equal(got, sizeof(*event) + event->len); // one event
    assert_string_equal(event->name, "f");
    assert_content("f", "new");
    assert_int_equal(close(watch), 0);
    assert_int_equal(unlink("f"), 0);
}

static void content_of_any_length_is_written(void **state)
{
    (void)state;
    static const char *const contents[] = {"", "x", "xy", ""};
    struct err_info info = {0};
    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        assert_int_equal(file_replace("short", bytes_of(contents[i]), &info), ERR_OK);
        assert_content("short", contents[i]);
    }
    assert_int_equal(unlink("short"), 0);
}

static void a_descriptor_is_written_to_and_no_file_is_replaced(void **state)
{
    (void)state;
    struct err_info info = {0};
    char link[32];
    CLEANUP(fd_closep) int log = open("log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(log >= 0);
    assert_int_equal(write(log, "one ", 4), 4);
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", log);
    assert_int_equal(symlink(link, "out"), 0);
    assert_int_equal(write_to("out", "two ", &info), ERR_OK);
    (void)snprintf(link, sizeof(link), "/dev/fd/%d", log);
    assert_int_equal(write_to(link, "three ", &info), ERR_OK);
    assert_int_equal(write(log, "four", 4), 4);
    assert_content("log", "one two three four");
    assert_int_equal(close(log), 0);
    log = -1;
    assert_int_not_equal(write_to("out", "five", &info), ERR_OK); // it is closed
    struct stat status;
    assert_int_equal(lstat("out", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(unlink("out"), 0);
    assert_int_equal(unlink("log"), 0);
}

static void a_link_without_a_target_gets_one(void **state)
{
    (void)state;
    struct err_info info = {0};
    struct stat status;
    assert_int_equal(symlink("target", "dangling"), 0);
    assert_int_equal(file_replace("dangling", bytes_of("new"), &info), ERR_OK);
    assert_int_equal(lstat("dangling", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_content("target", "new");
    assert_int_equal(unlink("dangling"), 0);
    assert_int_equal(unlink("target"), 0);
}

// 40 links are followed, as the kernel does.
static void a_chain_of_links_has_a_limit(void **state)
{
    (void)state;
    enum {
        LINKS = 41
    };
    struct err_info info = {0};
    assert_int_equal(file_replace("chain0", bytes_of("old"), &info), ERR_OK);
    for (int i = 1; i <= LINKS; i++) {
        char link[32];
        char target[32];
        (void)snprintf(link, sizeof(link), "chain%d", i);
        (void)snprintf(target, sizeof(target), "chain%d", i - 1);
        assert_int_equal(symlink(target, link), 0);
    }
    CLEANUP(text_freep) char *found = NULL;
    assert_int_equal(file_find_target("chain40", &found, &info), ERR_OK);
    assert_string_equal(found, "chain0");
    char *none = NULL;
    assert_int_not_equal(file_find_target("chain41", &none, &info), ERR_OK);
    assert_null(none);
    for (int i = 0; i <= LINKS; i++) {
        char link[32];
        (void)snprintf(link, sizeof(link), "chain%d", i);
        assert_int_equal(unlink(link), 0);
    }
}

int main(void)
{
    // A file size limit has the effect of a full disk on a write, if its signal is ignored.
    (void)signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replacing_shows_the_old_or_the_new_content),
        cmocka_unit_test(what_is_no_file_is_written_to_as_it_is),
        cmocka_unit_test(a_link_stays_one),
        cmocka_unit_test(a_mode_that_is_asked_for_holds_whatever_the_umask),
        cmocka_unit_test(under_sudo_a_file_is_who_called_its),
        cmocka_unit_test(a_strangers_link_is_not_followed_where_anybody_writes),
        cmocka_unit_test(a_file_that_is_read_again_must_be_a_regular_one),
        cmocka_unit_test(a_strangers_pipe_is_not_opened_where_anybody_writes),
        cmocka_unit_test(what_is_obeyed_is_no_strangers_where_anybody_writes),
        cmocka_unit_test(a_created_file_takes_a_place_and_no_content),
        cmocka_unit_test(links_in_a_circle_end),
        cmocka_unit_test_setup_teardown(a_mode_that_is_asked_for_holds_whatever_the_umask,
                                        refuse_nameless, allow_nameless),
        cmocka_unit_test(the_mode_follows_the_umask),
        cmocka_unit_test(a_full_disk_keeps_the_old_content),
        cmocka_unit_test_setup_teardown(replacing_shows_the_old_or_the_new_content, refuse_nameless,
                                        allow_nameless),
        cmocka_unit_test_setup_teardown(a_link_stays_one, refuse_nameless, allow_nameless),
        cmocka_unit_test_setup_teardown(the_mode_follows_the_umask, refuse_nameless,
                                        allow_nameless),
        cmocka_unit_test_setup_teardown(a_full_disk_keeps_the_old_content, refuse_nameless,
                                        allow_nameless),
        cmocka_unit_test(a_new_file_has_one_name_only),
        cmocka_unit_test(content_of_any_length_is_written),
        cmocka_unit_test(a_chain_of_links_has_a_limit),
        cmocka_unit_test(a_descriptor_is_written_to_and_no_file_is_replaced),
        cmocka_unit_test(a_link_without_a_target_gets_one),
    };
    return cmocka_run_group_tests(tests, group_folder_enter, group_folder_leave);
}
