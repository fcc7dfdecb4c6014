// SPDX-License-Identifier: MIT
// preflight: names that are looked up, scripts, and the dynamic loader's arguments.
#include "recorder/launch/preflight.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"

#if defined(__x86_64__)
#    define LOADER "/lib64/ld-linux-x86-64.so.2"
#else
#    define LOADER "/lib/ld-linux-aarch64.so.1"
#endif

enum {
    PATH_BYTES = 256,
};

static char g_folder[64];

static void write_bytes(const char *name, const char *bytes, size_t count, mode_t mode)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", g_folder, name);
    CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    write_bytes(name, text, strlen(text), mode);
}

static void make_folder(const char *name)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", g_folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(g_folder, sizeof(g_folder), "/tmp/preflight_test.XXXXXX");
    assert_non_null(mkdtemp(g_folder));
    make_folder("a");
    make_folder("b");
    make_folder("a/folder");
    write_file("a/closed", "#!/bin/sh\n", 0600);
    write_file("b/both", "#!/bin/sh\n", 0700);
    write_file("a/both", "#!/bin/sh\n", 0600);
    write_file("b/here", "#!/bin/sh\n", 0700);
    write_file("loose", "#!/bin/sh\n", 0700);
    write_file("text", "text\n", 0600);
    return chdir(g_folder);
}

static int tear_down(void **state)
{
    (void)state;
    char command[PATH_BYTES];
    (void)snprintf(command, sizeof(command), "rm -r %s", g_folder);
    assert_int_equal(chdir("/"), 0);
    return system(command); // NOLINT(cert-env33-c)
}

static enum err check(const char *program, struct preflight *out, struct err_info *info)
{
    char copy[PATH_BYTES];
    (void)snprintf(copy, sizeof(copy), "%s", program);
    char *argv[] = {copy, NULL};
    *info = (struct err_info){0};
    return preflight_check(argv, &(struct preflight_options){0}, out, info);
}

static void programs_are_found_as_execvp_does(void **state)
{
    (void)state;
    static const struct {
        const char *search;
        const char *program;
        const char *path; // NULL: refused
        int status;
        const char *sentence;
    } cases[] = {
        {"a:b", "here", "b/here", 0, NULL},
        {"a:b", "both", "b/both", 0, NULL},
        {"b:a", "both", "b/both", 0, NULL},
        {"a", "both", NULL, 126, "'both' in PATH is not executable"},
        {"a:b:", "closed", NULL, 126, "'closed' in PATH is not executable"},
        {"a:b", "folder", NULL, 127, "'folder' is not in PATH"},
        {"a:b", "loose", NULL, 127,
         "'loose' is not in PATH; write './' before a file of this directory"},
        {"a:b", "text", NULL, 127,
         "'text' is not in PATH, and the file of this directory is not executable"},
        {"a:b", "nothing", NULL, 127, "'nothing' is not in PATH"},
        {"a:", "loose", "./loose", 0, NULL},
        {":a", "loose", "./loose", 0, NULL},
        {"a::b", "loose", "./loose", 0, NULL},
        {"", "loose", "./loose", 0, NULL},
        {NULL, "sh", "/bin/sh", 0, NULL},
        {"a:b", "", NULL, 127, "the name of the program is empty"},
        {"b", "a/closed", NULL, 126, "'a/closed' is not executable"},
        {"b", "a/folder", NULL, 126, "'a/folder' is a directory"},
        {"b", "./a", NULL, 126, "'./a' is a directory"},
        {"b", "a/none", NULL, 127, "cannot run 'a/none': No such file or directory"},
        {"b", "loose/none", NULL, 127, "cannot run 'loose/none': Not a directory"},
        {"b", "b/here", "b/here", 0, NULL},
    };
    char before[4096];
    (void)snprintf(before, sizeof(before), "%s", getenv("PATH"));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct preflight found;
        struct err_info info;
        print_message("%s in %s\n", cases[i].program, cases[i].search);
        assert_int_equal(
            cases[i].search != NULL ? setenv("PATH", cases[i].search, 1) : unsetenv("PATH"), 0);
        const enum err err = check(cases[i].program, &found, &info);
        if (cases[i].path != NULL) {
            assert_int_equal(err, ERR_OK);
            assert_string_equal(strbuf_text(&found.path), cases[i].path);
            assert_string_equal(info.text, "");
        } else {
            assert_int_equal(err, cases[i].status == 127 ? ERR_NOT_FOUND : ERR_UNSUPPORTED);
            assert_int_equal(found.exit_status, cases[i].status);
            assert_string_equal(info.text, cases[i].sentence);
        }
        preflight_release(&found);
    }
    assert_int_equal(setenv("PATH", before, 1), 0);
}

// The interpreter is examined, and the script is executed.
static void scripts_lead_to_their_interpreter(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *executable;
    } cases[] = {
        {"#!/bin/sh\n", "/bin/sh"},     {"#! \t /bin/sh -e\n", "/bin/sh"},
        {"#!/bin/sh\t-e\n", "/bin/sh"}, {"#!/bin/sh", "/bin/sh"},
        {"#!b/here\n", "/bin/sh"}, // of that script
        {"#!\n", "./script"},           {"#/bin/sh\n", "./script"},
        {"!#/bin/sh\n", "./script"},    {"", "./script"},
        {"#!./script\n", "./script"}, // without end
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct preflight found;
        struct err_info info;
        print_message("%s\n", cases[i].text);
        write_file("script", cases[i].text, 0700);
        assert_int_equal(check("./script", &found, &info), ERR_OK);
        assert_string_equal(strbuf_text(&found.path), "./script");
        assert_string_equal(strbuf_text(&found.executable), cases[i].executable);
        preflight_release(&found);
    }
    // As many levels as the kernel follows.
    write_file("script", "#!/bin/sh\n", 0700);
    static const char *const names[] = {"script", "s1", "s2", "s3", "s4"};
    for (size_t level = 1; level < ARRAY_LEN(names); level++) {
        char text[64];
        struct preflight found;
        struct err_info info;
        (void)snprintf(text, sizeof(text), "#!./%s\n", names[level - 1]);
        write_file(names[level], text, 0700);
        (void)snprintf(text, sizeof(text), "./%s", names[level]);
        assert_int_equal(check(text, &found, &info), ERR_OK);
        assert_string_equal(strbuf_text(&found.executable), level < 4 ? "/bin/sh" : "./script");
        preflight_release(&found);
    }
    // The kernel reads no more of the first line than this.
    char line[300] = "#!/";
    struct preflight found;
    struct err_info info;
    memset(line + 3, 'x', sizeof(line) - 4);
    write_file("script", line, 0700);
    assert_int_equal(check("./script", &found, &info), ERR_NOT_FOUND);
    assert_int_equal(found.executable.len, 255 - 2);
    preflight_release(&found);
    write_file("script", "#!a/none\n", 0700);
    assert_int_equal(check("./script", &found, &info), ERR_NOT_FOUND);
    assert_int_equal(found.exit_status, 127);
    assert_string_equal(info.text,
                        "cannot run './script': its interpreter 'a/none' does not exist");
    preflight_release(&found);
}

// The kernel would say that the program does not exist.
static void a_missing_loader_is_named(void **state)
{
    (void)state;
    struct preflight found;
    struct err_info info;
    CLEANUP(strbuf_release) struct strbuf image = {0};
    assert_int_equal(file_read("/proc/self/exe", SIZE_MAX, &image, &info), ERR_OK);
    char *loader = memmem(image.data, image.len, LOADER, sizeof(LOADER));
    assert_non_null(loader);
    loader[sizeof(LOADER) - 2] = 'x';
    write_bytes("program", image.data, image.len, 0700);
    assert_int_equal(check("./program", &found, &info), ERR_NOT_FOUND);
    assert_int_equal(found.exit_status, 127);
    char wanted[PATH_BYTES];
    (void)snprintf(wanted, sizeof(wanted),
                   "cannot run './program': its dynamic loader '%s' does not exist", loader);
    assert_string_equal(info.text, wanted);
    preflight_release(&found);
}

static void the_loader_s_program_is_examined(void **state)
{
    (void)state;
    static const struct {
        const char *words[5];
        const char *executable; // NULL: the loader
    } cases[] = {
        {{"/bin/sh", "-c", "exit"}, "/bin/sh"},
        {{"--library-path", "/lib", "/bin/sh"}, "/bin/sh"},
        {{"--preload", "/bin/cat", "--argv0", "x", "/bin/sh"}, "/bin/sh"},
        {{"--inhibit-cache", "/bin/sh"}, "/bin/sh"},
        {{"--list", "/bin/sh"}, NULL},
        {{"--inhibit-cache", "--verify", "/bin/sh"}, NULL},
        {{"--help"}, NULL},
        {{"--version"}, NULL},
        {{"--list-tunables"}, NULL},
        {{"--list-diagnostics"}, NULL},
        {{"--library-path"}, NULL},
        {{"--inhibit-rpath", "--list", "/bin/sh"}, "/bin/sh"},
        {{"--audit", "--list", "/bin/sh"}, "/bin/sh"},
        {{"--glibc-hwcaps-prepend", "--list", "/bin/sh"}, "/bin/sh"},
        {{"--glibc-hwcaps-mask", "--list", "/bin/sh"}, "/bin/sh"},
        {{NULL}, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char words[6][64];
        char *argv[7] = {words[0]};
        (void)snprintf(words[0], sizeof(words[0]), "%s", LOADER);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].words) && cases[i].words[k] != NULL; k++) {
            (void)snprintf(words[k + 1], sizeof(words[k + 1]), "%s", cases[i].words[k]);
            argv[k + 1] = words[k + 1];
        }
        struct preflight found;
        struct err_info info = {0};
        print_message("%zu\n", i);
        assert_int_equal(preflight_check(argv, &(struct preflight_options){0}, &found, &info),
                         ERR_OK);
        assert_string_equal(strbuf_text(&found.path), LOADER);
        assert_string_equal(strbuf_text(&found.executable),
                            cases[i].executable != NULL ? cases[i].executable : LOADER);
        preflight_release(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_found_as_execvp_does),
        cmocka_unit_test(scripts_lead_to_their_interpreter),
        cmocka_unit_test(a_missing_loader_is_named),
        cmocka_unit_test(the_loader_s_program_is_examined),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
