// SPDX-License-Identifier: MIT
// Tests exec_check on files made byte by byte: each obstacle, scripts, and false heads. The tests
// of compilers' output are in tests/e2e/test_unrecorded.py.
#include "session/exec_check.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"

#if defined(__x86_64__)
#    define OUR_MACHINE   EM_X86_64
#    define GLIBC_LOADER  "/lib64/ld-linux-x86-64.so.2"
#    define MUSL_LOADER   "/lib/ld-musl-x86_64.so.1"
#    define OTHER_MACHINE EM_AARCH64
#else
#    define OUR_MACHINE   EM_AARCH64
#    define GLIBC_LOADER  "/lib/ld-linux-aarch64.so.1"
#    define MUSL_LOADER   "/lib/ld-musl-aarch64.so.1"
#    define OTHER_MACHINE EM_X86_64
#endif

#define BASE 0x400000u

// A file laid out as by the linker, mapped whole at BASE.
struct image {
    Elf64_Ehdr head;
    Elf64_Phdr segments[3]; // load, interpreter, dynamic
    Elf64_Dyn dynamic[4];
    char loader[64];
    char names[128]; // "", then the library that it needs
};

struct world {
    char folder[32];
    char path[64];
};

static struct image make_image(const char *loader, const char *library)
{
    struct image image = {
        .head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                             EV_CURRENT},
                 .e_type = ET_DYN,
                 .e_machine = OUR_MACHINE,
                 .e_phoff = offsetof(struct image, segments),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = 3},
        .segments = {{.p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = sizeof(struct image)},
                     {.p_type = loader != NULL ? PT_INTERP : PT_NULL,
                      .p_offset = offsetof(struct image, loader),
                      .p_filesz = sizeof(((struct image *)0)->loader)},
                     {.p_type = PT_DYNAMIC,
                      .p_offset = offsetof(struct image, dynamic),
                      .p_filesz = sizeof(((struct image *)0)->dynamic)}},
        .dynamic = {{.d_tag = DT_NEEDED, .d_un.d_val = 1},
                    {.d_tag = DT_STRTAB, .d_un.d_ptr = BASE + offsetof(struct image, names)}},
    };
    (void)snprintf(image.loader, sizeof(image.loader), "%s", loader != NULL ? loader : "");
    (void)snprintf(image.names + 1, sizeof(image.names) - 1, "%s", library);
    return image;
}

static void write_file(const char *path, const void *content, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, size), size);
    assert_int_equal(close(fd), 0);
}

static void expect(const struct world *w, const void *content, size_t size, enum exec_obstacle want)
{
    write_file(w->path, content, size);
    assert_int_equal(exec_check(w->path), want);
}

static void test_what_programs_say_of_themselves(void **state)
{
    static const struct {
        const char *loader;
        const char *library;
        enum exec_obstacle want;
    } cases[] = {
        {GLIBC_LOADER, "libc.so.6", EXEC_NONE},
        {"/nix/store/0123-glibc/lib" GLIBC_LOADER, "libc.so.6", EXEC_NONE},
        {NULL, "", EXEC_STATIC},
        {MUSL_LOADER, "libc.so", EXEC_LIBC},
        {"/system/bin/linker64", "libc.so", EXEC_LIBC},
        {"", "", EXEC_LIBC},
        {GLIBC_LOADER, "libasan.so.8", EXEC_SANITIZER},
        {GLIBC_LOADER, "libtsan.so.2", EXEC_SANITIZER},
        {GLIBC_LOADER, "libclang_rt.asan-x86_64.so", EXEC_SANITIZER},
        {GLIBC_LOADER, "libasan", EXEC_NONE},
        {GLIBC_LOADER, "libubsan.so.1", EXEC_NONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct image image = make_image(cases[i].loader, cases[i].library);
        expect(*state, &image, sizeof(image), cases[i].want);
    }
}

static void test_other_machines(void **state)
{
    struct image image = make_image(GLIBC_LOADER, "libc.so.6");
    image.head.e_machine = OTHER_MACHINE;
    expect(*state, &image, sizeof(image), EXEC_MACHINE);
    image.head.e_ident[EI_CLASS] = ELFCLASS32;
    expect(*state, &image, sizeof(image), EXEC_BITS32);
}

static void test_the_loader_itself(void **state)
{
    const struct world *w = *state;
    struct image image = make_image(NULL, strrchr(GLIBC_LOADER, '/') + 1);
    expect(w, &image, sizeof(image), EXEC_STATIC); // it needs one
    assert_false(exec_check_is_loader(w->path));
    image.dynamic[0].d_tag = DT_SONAME;
    expect(w, &image, sizeof(image), EXEC_NONE); // whatever the file's name
    assert_true(exec_check_is_loader(w->path));
    image = make_image(GLIBC_LOADER, "libc.so.6");
    expect(w, &image, sizeof(image), EXEC_NONE);
    assert_false(exec_check_is_loader(w->path));
    write_file(w->path, "#!/bin/sh", 9);
    assert_false(exec_check_is_loader(w->path));
    assert_false(exec_check_is_loader("/proc/no such file"));
}

// Any head leads to a result, and no head hides a program that could be recorded.
static void test_heads_that_lie(void **state)
{
    for (size_t size = 0; size < sizeof(struct image); size += 7) {
        const struct image whole = make_image(GLIBC_LOADER, "libc.so.6");
        write_file(((struct world *)*state)->path, &whole, size);
        (void)exec_check(((struct world *)*state)->path); // neither hangs nor crashes
    }
    struct image image = make_image(GLIBC_LOADER, "libc.so.6");
    image.head.e_phoff = UINT64_MAX - 8;
    expect(*state, &image, sizeof(image), EXEC_NONE);
    image = make_image(GLIBC_LOADER, "libc.so.6");
    image.head.e_phnum = UINT16_MAX;
    expect(*state, &image, sizeof(image), EXEC_NONE);
    image = make_image(GLIBC_LOADER, "libasan.so.8");
    image.segments[2].p_filesz = UINT64_MAX;
    expect(*state, &image, sizeof(image), EXEC_SANITIZER);
    image.dynamic[1].d_un.d_ptr = 0;
    expect(*state, &image, sizeof(image), EXEC_NONE);
    image.dynamic[0].d_un.d_val = UINT64_MAX;
    image.dynamic[1].d_un.d_ptr = BASE;
    expect(*state, &image, sizeof(image), EXEC_NONE);
}

// A table of segments behind the image: as long as one may be, longer, and of other entries.
static void test_tables_of_segments(void **state)
{
    enum {
        MOST = 128,
    };
    static struct {
        struct image image;
        Elf64_Phdr segments[MOST + 1];
    } file;
    file.image = make_image(GLIBC_LOADER, "libasan.so.8");
    file.image.head.e_phoff = offsetof(typeof(file), segments);
    memcpy(file.segments + MOST - 3, file.image.segments, sizeof(file.image.segments));
    file.image.head.e_phnum = MOST;
    expect(*state, &file, sizeof(file), EXEC_SANITIZER);
    file.image.head.e_phnum = MOST - 1; // without the dynamic section
    expect(*state, &file, sizeof(file), EXEC_NONE);
    file.image.head.e_phnum = MOST + 1;
    expect(*state, &file, sizeof(file), EXEC_NONE);
    file.image.head.e_phnum = MOST;
    file.image.head.e_phentsize++;
    expect(*state, &file, sizeof(file), EXEC_NONE);
    // One that ends in the middle of the file's last segment.
    file.image.head.e_phentsize--;
    expect(*state, &file, offsetof(typeof(file), segments[MOST]), EXEC_SANITIZER);
    expect(*state, &file, offsetof(typeof(file), segments[MOST]) - 1, EXEC_NONE);
}

// The bytes of the file that are mapped have names, and those behind do not.
static void test_names_lie_in_a_mapped_segment(void **state)
{
    struct image image = make_image(GLIBC_LOADER, "libasan.so.8");
    const size_t names_at = offsetof(struct image, names);
    image.segments[0].p_filesz = names_at + 1;
    expect(*state, &image, sizeof(image), EXEC_SANITIZER);
    image.segments[0].p_filesz = names_at;
    expect(*state, &image, sizeof(image), EXEC_NONE);
    image.segments[0].p_filesz = sizeof(image);
    image.segments[0].p_vaddr = BASE + names_at + 1;
    expect(*state, &image, sizeof(image), EXEC_NONE);
    image.segments[0].p_vaddr = BASE + names_at;
    image.segments[0].p_offset = names_at;
    expect(*state, &image, sizeof(image), EXEC_SANITIZER);
    image.segments[2].p_filesz = 2 * sizeof(Elf64_Dyn); // the name and the table of names
    expect(*state, &image, sizeof(image), EXEC_SANITIZER);
    image.segments[2].p_filesz--;
    expect(*state, &image, sizeof(image), EXEC_NONE);
    image.segments[2].p_filesz = 0;
    expect(*state, &image, sizeof(image), EXEC_NONE);
}

// A process without standard input gives descriptor 0 to the next file that it opens.
static void test_descriptor_zero(void **state)
{
    const struct world *w = *state;
    const struct image image = make_image(MUSL_LOADER, "libc.so");
    const struct image loader = make_image(NULL, strrchr(GLIBC_LOADER, '/') + 1);
    write_file(w->path, &image, sizeof(image));
    const int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    (void)close(STDIN_FILENO); // it may be closed
    assert_int_equal(exec_check(w->path), EXEC_LIBC);
    struct image named = loader;
    named.dynamic[0].d_tag = DT_SONAME;
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC); // 0, so that the file is written
    write_file(w->path, &named, sizeof(named));
    (void)close(other); // read only
    const bool is_loader = exec_check_is_loader(w->path);
    if (kept >= 0) {
        assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
        assert_int_equal(close(kept), 0);
    }
    assert_true(is_loader);
}

static void test_scripts(void **state)
{
    const struct world *w = *state;
    char program[96];
    char text[200];
    const struct image image = make_image(MUSL_LOADER, "libc.so");
    (void)snprintf(program, sizeof(program), "%s/program", w->folder);
    write_file(program, &image, sizeof(image));
    static const char *const forms[][2] = {{"#!", "\n"}, {"#! \t", " -x y\n"}, {"#!", ""}};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const int length =
            snprintf(text, sizeof(text), "%s%s%s", forms[i][0], program, forms[i][1]);
        expect(w, text, (size_t)length, EXEC_LIBC);
    }
    static const char *const false_heads[] = {"#", "#x", "# ", "x!", "!#", " #!", ""};
    for (size_t i = 0; i < ARRAY_LEN(false_heads); i++) {
        const int length = snprintf(text, sizeof(text), "%s%s\n", false_heads[i], program);
        expect(w, text, (size_t)length, EXEC_NONE);
    }
    // The kernel reads 256 bytes: an interpreter's path may have as many, less "#!" and the end.
    char line[257] = "#!";
    size_t at = 2;
    for (; at + strlen(program) < 255; at++) {
        line[at] = '/';
    }
    (void)snprintf(line + at, sizeof(line) - at, "%s\n", program);
    assert_int_equal(strlen(line), 256);
    expect(w, line, 256, EXEC_LIBC);
    const int length = snprintf(text, sizeof(text), "#!%s\n", w->path);
    expect(w, text, (size_t)length, EXEC_NONE); // itself, without end
    expect(w, "#!\n", 3, EXEC_NONE);
    expect(w, "#!", 2, EXEC_NONE);
    expect(w, "", 0, EXEC_NONE);
    assert_int_equal(unlink(program), 0);
}

// Scripts that scripts interpret: as many as the kernel follows, and one more.
static void test_chains_of_scripts(void **state)
{
    enum {
        FOLLOWED = 4,
        MOST = FOLLOWED + 1,
    };
    const struct world *w = *state;
    const struct image image = make_image(MUSL_LOADER, "libc.so");
    char paths[MOST + 1][48];
    for (int i = 0; i <= MOST; i++) {
        char text[64];
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/%d", w->folder, i);
        const int length = snprintf(text, sizeof(text), "#!%s", i > 0 ? paths[i - 1] : "");
        write_file(paths[i], i > 0 ? (const void *)text : &image,
                   i > 0 ? (size_t)length : sizeof(image));
    }
    const enum exec_obstacle followed = exec_check(paths[FOLLOWED]);
    const enum exec_obstacle unfollowed = exec_check(paths[MOST]);
    for (int i = 0; i <= MOST; i++) {
        assert_int_equal(unlink(paths[i]), 0);
    }
    assert_int_equal(followed, EXEC_LIBC);
    assert_int_equal(unfollowed, EXEC_NONE);
}

static void test_what_is_no_file(void **state)
{
    const struct world *w = *state;
    assert_int_equal(exec_check(w->folder), EXEC_NONE);
    assert_int_equal(exec_check("/nowhere/at/all"), EXEC_NONE);
    (void)unlink(w->path);
    assert_int_equal(mkfifo(w->path, 0755), 0);
    assert_int_equal(exec_check(w->path), EXEC_NONE); // and does not wait for a writer
}

static void expect_of(const struct world *w, uid_t user, gid_t group, mode_t mode, int want)
{
    assert_int_equal(chown(w->path, user, group), 0);
    assert_int_equal(chmod(w->path, mode), 0); // chown clears the bits
    if ((int)exec_check(w->path) != want) {
        fail_msg("%u:%u %o", user, group, mode);
    }
}

// Also a program that cairn could trace: traced, it would not change its identity.
static void test_set_user_id(void **state)
{
    const struct world *w = *state;
    static const struct {
        const char *loader;
        enum exec_obstacle own; // as a program of our user
    } cases[] = {
        {GLIBC_LOADER, EXEC_NONE},
        {MUSL_LOADER, EXEC_LIBC},
        {NULL, EXEC_STATIC},
    };
    const uid_t user = getuid();
    const gid_t group = getgid();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct image image = make_image(cases[i].loader, "libc.so.6");
        (void)unlink(w->path);
        expect(*state, &image, sizeof(image), cases[i].own);
        expect_of(w, user, group, 06755, cases[i].own);
        if (user == 0) {
            const int own = cases[i].own;
            expect_of(w, 65534, 65533, 0755, own);
            expect_of(w, 65534, group, 02755, own);
            expect_of(w, user, 65533, 04755, own);
            expect_of(w, 65534, group, 04755, EXEC_IDENTITY);
            expect_of(w, user, 65533, 02755, EXEC_IDENTITY);
            expect_of(w, 65534, 65533, 06755, EXEC_IDENTITY);
        }
    }
}

// capabilities(7): a file's capabilities change what a process of another user than root may do.
static void test_file_capabilities(void **state)
{
    const struct world *w = *state;
    const struct image image = make_image(GLIBC_LOADER, "libc.so.6");
    const struct vfs_cap_data capabilities = {.magic_etc =
                                                  VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                              .data = {{.permitted = 1u << CAP_NET_BIND_SERVICE}}};
    expect(w, &image, sizeof(image), EXEC_NONE);
    if (getuid() != 0) {
        return; // only root gives a file capabilities
    }
    assert_int_equal(chmod(w->folder, 0755), 0);
    for (int has_some = 0; has_some < 2; has_some++) {
        if (has_some != 0) {
            assert_int_equal(
                setxattr(w->path, "security.capability", &capabilities, sizeof(capabilities), 0),
                0);
        }
        assert_int_equal(exec_check(w->path), EXEC_NONE);
        const pid_t child = fork();
        if (child == 0) {
            _exit(setgid(65534) == 0 && setuid(65534) == 0 ? (int)exec_check(w->path) : 100);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), has_some != 0 ? EXEC_IDENTITY : EXEC_NONE);
    }
}

static void test_finding(void **state)
{
    const struct world *w = *state;
    char search[160];
    char found[64];
    write_file(w->path, "x", 1);
    const char *name = strrchr(w->path, '/') + 1;
    (void)snprintf(search, sizeof(search), "/nowhere:%s", w->folder);
    assert_true(exec_find(name, search, found, sizeof(found)));
    assert_string_equal(found, w->path);
    assert_false(exec_find(name, "/nowhere", found, sizeof(found)));
    // A folder without a name is the current one. Names of one letter are names.
    const int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(w->folder), 0);
    static const char *const here[][2] = {
        {":/nowhere", "file"}, {"/nowhere:", "file"}, {"/nowhere::/", "file"}, {".", "./file"}};
    for (size_t i = 0; i < ARRAY_LEN(here); i++) {
        assert_true(exec_find(name, here[i][0], found, sizeof(found)));
        assert_string_equal(found, here[i][1]);
    }
    assert_int_equal(fchdir(before), 0);
    assert_int_equal(close(before), 0);
    // No room for the zero, and less: nothing is written behind the room.
    for (size_t size = strlen(w->path); size > 0; size--) {
        memset(found, '#', sizeof(found));
        assert_false(exec_find(name, w->folder, found, size));
        assert_int_equal(found[size], '#');
    }
    assert_int_equal(chmod(w->path, 0644), 0);
    assert_false(exec_find(name, search, found, sizeof(found)));
    assert_true(exec_find("a/b", search, found, sizeof(found)));
    assert_string_equal(found, "a/b");
    assert_true(exec_find("sh", NULL, found, sizeof(found)));
}

static int open_world(void **state)
{
    static struct world w;
    (void)snprintf(w.folder, sizeof(w.folder), "/tmp/exec_look.XXXXXX");
    if (mkdtemp(w.folder) == NULL) {
        return -1;
    }
    (void)snprintf(w.path, sizeof(w.path), "%s/file", w.folder);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    const struct world *w = *state;
    (void)unlink(w->path); // some leave it
    return rmdir(w->folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
        TEST(test_what_programs_say_of_themselves),
        TEST(test_other_machines),
        TEST(test_the_loader_itself),
        TEST(test_heads_that_lie),
        TEST(test_tables_of_segments),
        TEST(test_names_lie_in_a_mapped_segment),
        TEST(test_descriptor_zero),
        TEST(test_scripts),
        TEST(test_chains_of_scripts),
        TEST(test_what_is_no_file),
        TEST(test_set_user_id),
        TEST(test_file_capabilities),
        TEST(test_finding),
#undef TEST
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
