// SPDX-License-Identifier: MIT
// allocator_scan_test: the allocators of libraries and of programs with an allocator inside. The
// addresses are checked against nm, the program of binutils. Context: H, one thread.
#include "inject/allocators/allocator_scan.h"

#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "inject/code/patch_plan.h"

#if defined(__x86_64__)
#    define TRIPLE       "x86_64-linux-gnu"
#    define GLIBC_LOADER "/lib64/ld-linux-x86-64.so.2"
#    define MUSL_LOADER  "/lib/ld-musl-x86_64.so.1"
#else
#    define TRIPLE       "aarch64-linux-gnu"
#    define GLIBC_LOADER "/lib/ld-linux-aarch64.so.1"
#    define MUSL_LOADER  "/lib/ld-musl-aarch64.so.1"
#endif

enum {
    PATH_BYTES = 512,
    NAMES_MAX = 48,
};

// Append the output of a command.
static void run(const char *command, struct strbuf *out)
{
    FILE *output CLEANUP(stream_closep) = popen(command, "r"); // NOLINT(cert-env33-c)
    assert_non_null(output);
    char text[4096];
    for (size_t got = 1; got > 0; strbuf_append(out, text, got)) {
        got = fread(text, 1, sizeof(text), output);
    }
    assert_int_equal(strbuf_result(out), ERR_OK);
}

// List the defined symbols of a file: "address letter name" in each line.
static void run_nm(const char *path, const char *table, struct strbuf *out)
{
    char command[PATH_BYTES + 64];
    (void)snprintf(command, sizeof(command), "nm %s --defined-only '%s'", table, path);
    run(command, out);
}

// Return the address of `name` in the output of nm, 0 if it has none.
static uint64_t nm_address(const struct strbuf *listed, const char *name)
{
    const size_t name_len = strlen(name);
    const char *at = strbuf_text(listed);
    while ((at = strstr(at, name)) != NULL) {
        const char *end = at + name_len;
        if (at - strbuf_text(listed) >= 19 && at[-1] == ' ' && (*end == '\n' || *end == '@')) {
            return strtoull(at - 19, NULL, 16);
        }
        at = end;
    }
    return 0;
}

// A library of the machine, by its name.
static void library_path(const char *name, char path[PATH_BYTES])
{
    if (*name == '/') {
        (void)snprintf(path, PATH_BYTES, "%s", name);
        return;
    }
    static const char *const folders[] = {"/usr/lib/" TRIPLE, "/lib/" TRIPLE};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        (void)snprintf(path, PATH_BYTES, "%s/%s", folders[i], name);
        if (access(path, R_OK) == 0) {
            return;
        }
    }
    fail_msg("no %s", name);
}

static void scan_file(const char *path,
                      const struct name_sources *sources,
                      const struct allocator_name_vec *names,
                      struct allocator_scan *out)
{
    struct elf_file module = {.fd = -1};
    assert_int_equal(elf_file_open(&module, path, NULL), ERR_OK);
    assert_int_equal(allocator_scan(&module, path, sources, names, out), ERR_OK);
    elf_file_close(&module);
}

static const struct allocator_entry *find_entry(const struct allocator_scan *scan, uint64_t addr)
{
    for (size_t i = 0; i < scan->entries.len; i++) {
        if (scan->entries.items[i].addr == addr) {
            return scan->entries.items + i;
        }
    }
    return NULL;
}

struct subject {
    const char *library;
    const char *owner;  // NULL: unknown
    size_t entry_count; // distinct addresses
    struct {
        const char *name;
        enum agent_hook hook;
    } functions[NAMES_MAX];
};

static const struct subject subjects[] = {
    {"libc.so.6",
     "libc",
     22,
     {{"malloc", AGENT_MALLOC},
      {"execve", AGENT_EXECVE},
      {"execveat", AGENT_EXECVEAT},
      {"fexecve", AGENT_FEXECVE},
      {"mmap", AGENT_MMAP},
      {"munmap", AGENT_MUNMAP},
      {"mremap", AGENT_MREMAP},
      {"brk", AGENT_BRK},
      {"sbrk", AGENT_SBRK},
      {"_exit", AGENT_EXIT},
      {"setrlimit", AGENT_SETRLIMIT},
      {"prlimit64", AGENT_PRLIMIT},
      {"prctl", AGENT_PRCTL},
      {"syscall", AGENT_SYSCALL},
      {"free", AGENT_FREE},
      {"calloc", AGENT_CALLOC},
      {"realloc", AGENT_REALLOC},
      {"reallocarray", AGENT_REALLOCARRAY},
      {"aligned_alloc", AGENT_ALIGNED_ALLOC},
      {"posix_memalign", AGENT_POSIX_MEMALIGN},
      {"valloc", AGENT_MALLOC},
      {"pvalloc", AGENT_MALLOC}}},
    // No malloc of its own.
    {"libstdc++.so.6", NULL, 0, {{NULL, 0}}},
    {GLIBC_LOADER, NULL, 1, {{"_dl_debug_state", AGENT_DL_DEBUG_STATE}}},
    {MUSL_LOADER,
     "libc",
     23,
     {{"malloc", AGENT_MALLOC},
      {"execve", AGENT_EXECVE},
      {"fexecve", AGENT_FEXECVE},
      {"mmap", AGENT_MMAP},
      {"munmap", AGENT_MUNMAP},
      {"mremap", AGENT_MREMAP},
      {"brk", AGENT_BRK},
      {"sbrk", AGENT_SBRK},
      {"_exit", AGENT_EXIT},
      {"_Exit", AGENT_EXIT},
      {"setrlimit", AGENT_SETRLIMIT},
      {"prlimit", AGENT_PRLIMIT},
      {"prctl", AGENT_PRCTL},
      {"syscall", AGENT_SYSCALL},
      {"free", AGENT_FREE},
      {"calloc", AGENT_CALLOC},
      {"realloc", AGENT_REALLOC},
      {"reallocarray", AGENT_REALLOCARRAY},
      {"aligned_alloc", AGENT_ALIGNED_ALLOC},
      {"memalign", AGENT_ALIGNED_ALLOC},
      {"posix_memalign", AGENT_POSIX_MEMALIGN},
      {"valloc", AGENT_MALLOC},
      {"_dl_debug_state", AGENT_DL_DEBUG_STATE}}},
    {"libjemalloc.so.2",
     "jemalloc",
     33,
     {{"malloc", AGENT_MALLOC},
      {"free", AGENT_FREE},
      {"memalign", AGENT_ALIGNED_ALLOC},
      {"mallocx", AGENT_MALLOC},
      {"rallocx", AGENT_REALLOC},
      {"xallocx", AGENT_XALLOCX},
      {"dallocx", AGENT_FREE},
      {"sdallocx", AGENT_FREE},
      {"_Znwm", AGENT_NEW},
      {"_Znam", AGENT_NEW},
      {"_ZnwmSt11align_val_t", AGENT_NEW_ALIGNED},
      {"_ZnwmSt11align_val_tRKSt9nothrow_t", AGENT_MALLOC},
      {"_ZdlPvSt11align_val_tRKSt9nothrow_t", AGENT_FREE}}},
    {"libtcmalloc.so.4",
     "tcmalloc",
     0, // differs between builds
     {{"malloc", AGENT_MALLOC},
      {"tc_malloc", AGENT_MALLOC},
      {"free", AGENT_FREE},
      {"_ZdlPv", AGENT_FREE},
      {"tc_calloc", AGENT_CALLOC},
      {"_Znwm", AGENT_NEW},
      {"tc_newarray", AGENT_NEW},
      {"tc_new_nothrow", AGENT_MALLOC}}},
    {"libmimalloc.so.2",
     "mimalloc",
     0,
     {{"malloc", AGENT_MALLOC},
      {"mi_malloc", AGENT_MALLOC},
      {"mi_free", AGENT_FREE},
      {"cfree", AGENT_FREE},
      {"mi_free_size", AGENT_FREE},
      {"mi_new", AGENT_NEW},
      {"_ZnwmSt11align_val_t", AGENT_NEW_ALIGNED},
      {"mi_realloc_aligned", AGENT_REALLOC},
      {"mi_recalloc", AGENT_REALLOCARRAY},
      {"mi_heap_malloc", AGENT_ALIGNED_ALLOC},
      {"mi_strdup", AGENT_STRDUP}}},
};

static void entries_of_libraries_are_those_of_nm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        const struct subject *subject = subjects + i;
        char path[PATH_BYTES];
        library_path(subject->library, path);
        struct allocator_scan scan = {0};
        scan_file(path, NULL, NULL, &scan);
        CLEANUP(strbuf_release) struct strbuf listed = {0};
        run_nm(path, "-D", &listed);
        for (size_t k = 0; k < NAMES_MAX && subject->functions[k].name != NULL; k++) {
            const char *name = subject->functions[k].name;
            const struct allocator_entry *entry = find_entry(&scan, nm_address(&listed, name));
            if (entry == NULL || entry->hook != subject->functions[k].hook) {
                fail_msg("%s of %s: %s", name, path, entry == NULL ? "not found" : entry->name);
            }
        }
        assert_string_equal(scan.owner != NULL ? scan.owner : "none",
                            subject->owner != NULL ? subject->owner : "none");
        if (subject->entry_count != 0 && scan.entries.len != subject->entry_count) {
            fail_msg("%s: %zu entries, wanted %zu", path, scan.entries.len, subject->entry_count);
        }
        for (size_t k = 0; k < scan.entries.len; k++) {
            const struct allocator_entry *entry = scan.entries.items + k;
            assert_true(k == 0 || entry[-1].addr < entry->addr);
            assert_int_equal(entry->addr, nm_address(&listed, entry->name));
            // Every throwing operator of these has a form that a hook can call.
            if (agent_hook_shape(entry->hook).effect == AGENT_ALLOCATES_OR_THROWS) {
                assert_in_range(entry->nothrow, 0, scan.entries.len - 1);
                assert_int_equal(scan.entries.items[entry->nothrow].hook, AGENT_MALLOC);
            }
        }
        allocator_scan_release(&scan);
    }
}

// The functions that a program of tests/programs/attach calls, without its prefix.
static const char *const plain_functions[] = {"malloc",  "free",           "calloc",
                                              "realloc", "posix_memalign", "aligned_alloc"};
static const char *const extended_functions[] = {"mallocx", "rallocx", "dallocx", "sdallocx"};

static void check_function(const struct allocator_scan *scan,
                           const struct strbuf *listed,
                           const char *program,
                           const char *prefix,
                           const char *function)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s%s", prefix, function);
    const struct allocator_entry *entry = find_entry(scan, nm_address(listed, name));
    const struct allocator_form *form = allocator_form_find(function, strlen(function));
    if (entry == NULL || entry->hook != form->hook) {
        fail_msg("%s of %s: %s", name, program, entry == NULL ? "not found" : entry->name);
    }
}

static void entries_of_programs_are_those_of_nm(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        const char *named; // the program with the same addresses and a symbol table
        const char *prefix;
        bool is_extended;
        bool has_operators;
    } programs[] = {
        {"jemalloc_inside", "jemalloc_inside", "", true, false},
        {"jemalloc_no_pie", "jemalloc_no_pie", "", true, true},
        {"jemalloc_prefixed", "jemalloc_prefixed", "_rjem_", true, false},
        {"jemalloc_static", "jemalloc_static", "", true, false},
        {"jemalloc_apart", "jemalloc_prefixed", "_rjem_", true, false},
        {"tcmalloc_inside", "tcmalloc_inside", "", false, true},
        {"glibc_static", "glibc_static", "", false, false},
        {"glibc_static_pie", "glibc_static_pie", "", false, false},
        {"musl_static", "musl_static", "", false, false},
        {"rust_jemalloc", "rust_jemalloc", "_rjem_", true, false},
    };
    static const struct name_sources nowhere = {0};
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof(path), "%s/%s", PROGRAMS, programs[i].named);
        CLEANUP(strbuf_release) struct strbuf listed = {0};
        run_nm(path, "", &listed);
        (void)snprintf(path, sizeof(path), "%s/%s", PROGRAMS, programs[i].program);
        struct allocator_scan scan = {0};
        scan_file(path, &nowhere, NULL, &scan);
        assert_null(scan.hidden);
        for (size_t k = 0; k < ARRAY_LEN(plain_functions); k++) {
            check_function(&scan, &listed, path, programs[i].prefix, plain_functions[k]);
        }
        for (size_t k = 0; programs[i].is_extended && k < ARRAY_LEN(extended_functions); k++) {
            check_function(&scan, &listed, path, programs[i].prefix, extended_functions[k]);
        }
        const bool has_operators = find_entry(&scan, nm_address(&listed, "_Znwm")) != NULL;
        assert_int_equal(has_operators, programs[i].has_operators);
        allocator_scan_release(&scan);
    }
}

static size_t read_file_code(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    Elf *elf = context;
    size_t count = 0;
    (void)elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) != NULL && header.p_type == PT_LOAD &&
            addr - header.p_vaddr < header.p_filesz) {
            const uint64_t at = addr - header.p_vaddr;
            const uint64_t left = header.p_filesz - at;
            const Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)(header.p_offset + at),
                                                        len < left ? len : left, ELF_T_BYTE);
            memcpy(out, data->d_buf, data->d_size);
            return data->d_size;
        }
    }
    return 0;
}

static void check_patches(const char *path)
{
    struct elf_file module = {.fd = -1};
    struct allocator_scan scan = {0};
    struct patch_plan plan = {0};
    static struct patch_target targets[128];
    assert_int_equal(elf_file_open(&module, path, NULL), ERR_OK);
    assert_int_equal(allocator_scan(&module, path, NULL, NULL, &scan), ERR_OK);
    assert_in_range(scan.entries.len, 1, ARRAY_LEN(targets));
    for (size_t i = 0; i < scan.entries.len; i++) {
        const struct allocator_entry *entry = scan.entries.items + i;
        targets[i] = (struct patch_target){.addr = entry->addr,
                                           .size_bytes = entry->size_bytes,
                                           .hook = entry->hook,
                                           .nothrow = entry->nothrow,
                                           .name = entry->name};
    }
    for (size_t i = 0; i < AGENT_HOOK_COUNT; i++) {
        plan.hook_addrs[i] = 0x7f0000000000;
    }
    const struct code_reader reader = {.read = read_file_code, .context = module.elf};
    assert_int_equal(patch_plan_add(&plan, targets, scan.entries.len, 0x4000000, &reader), ERR_OK);
    for (size_t i = 0; i < plan.refusals.len; i++) {
        print_error("%s of %s %s\n", plan.refusals.items[i].name, path,
                    plan.refusals.items[i].reason);
    }
    assert_int_equal(plan.refusals.len, 0);
    patch_plan_release(&plan);
    allocator_scan_release(&scan);
    elf_file_close(&module);
}

static void every_entry_can_be_patched(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "jemalloc_inside",  "jemalloc_no_pie", "jemalloc_prefixed",
        "jemalloc_static",  "tcmalloc_inside", "glibc_static",
        "glibc_static_pie", "musl_static",     "rust_jemalloc",
    };
    char path[PATH_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        if (subjects[i].functions[0].name != NULL) {
            library_path(subjects[i].library, path);
            check_patches(path);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", PROGRAMS, programs[i]);
        check_patches(path);
    }
}

static void an_allocator_without_names_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        const char *hidden;
        const char *sentence; // its build-id is not known here
    } programs[] = {
        {"jemalloc_static_stripped", "jemalloc", " contains jemalloc, but has no symbols"},
        {"glibc_static_stripped", "an allocator", " contains an allocator, but has no symbols"},
        {"musl_dynamic", NULL, NULL},
        {"glibc_dynamic", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof(path), "%s/%s", PROGRAMS, programs[i].program);
        struct elf_file module = {.fd = -1};
        struct allocator_scan scan = {0};
        CLEANUP(strbuf_release) struct strbuf sentence = {0};
        assert_int_equal(elf_file_open(&module, path, NULL), ERR_OK);
        assert_int_equal(allocator_scan(&module, path, NULL, NULL, &scan), ERR_OK);
        assert_int_equal(scan.entries.len, 0);
        allocator_scan_read_texts(&scan, &module);
        if (programs[i].hidden == NULL) {
            assert_null(scan.hidden);
        } else {
            assert_string_equal(scan.hidden, programs[i].hidden);
            allocator_scan_explain(&scan, &module, path, &sentence);
            assert_non_null(strstr(strbuf_text(&sentence), programs[i].sentence));
            assert_non_null(strstr(strbuf_text(&sentence), " would help"));
        }
        elf_file_close(&module);
        allocator_scan_release(&scan);
    }
}

static void users_names_are_entries(void **state)
{
    (void)state;
    struct allocator_name_vec names = {0};
    assert_int_equal(
        allocator_names_parse("malloc=do_round,free=do_extended,calloc=no_such", &names, NULL),
        ERR_OK);
    struct allocator_scan scan = {0};
    scan_file(PROGRAMS "/glibc_dynamic", NULL, &names, &scan);
    CLEANUP(strbuf_release) struct strbuf listed = {0};
    run_nm(PROGRAMS "/glibc_dynamic", "", &listed);
    assert_int_equal(scan.entries.len, 2);
    const struct allocator_entry *mine = find_entry(&scan, nm_address(&listed, "do_round"));
    assert_non_null(mine);
    assert_string_equal(mine->name, "do_round");
    assert_int_equal(mine->hook, AGENT_MALLOC);
    assert_true(mine->size_bytes > 100);
    mine = find_entry(&scan, nm_address(&listed, "do_extended"));
    assert_non_null(mine);
    assert_int_equal(mine->hook, AGENT_FREE);
    allocator_scan_release(&scan);
    allocator_names_release(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_of_libraries_are_those_of_nm),
        cmocka_unit_test(entries_of_programs_are_those_of_nm),
        cmocka_unit_test(every_entry_can_be_patched),
        cmocka_unit_test(an_allocator_without_names_is_said),
        cmocka_unit_test(users_names_are_entries),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
