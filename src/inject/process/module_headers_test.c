// SPDX-License-Identifier: MIT
// The modules of this process as the loader names them, against those that its memory gives.
#include "inject/process/module_headers.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/test_support/open_files.h"
#include "host/containers/address_range.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "inject/process/target_reading.h"
#include "machine_arch.h"

static struct target_process g_target;
static unsigned g_compared;
static unsigned g_mappings; // that the target seems to have

static const struct target_module *module_with_bias(uint64_t bias)
{
    for (size_t i = 0; i < g_target.modules.len; i++) {
        if (g_target.modules.items[i].load_bias == bias) {
            return g_target.modules.items + i;
        }
    }
    return NULL;
}

static const struct target_module *module_at(const struct target_process *target, uint64_t start)
{
    for (size_t i = 0; i < target->modules.len; i++) {
        if (target->modules.items[i].start == start) {
            return target->modules.items + i;
        }
    }
    return NULL;
}

static int compare_module(struct dl_phdr_info *loaded, size_t size, void *context)
{
    (void)size;
    (void)context;
    const struct target_module *module = module_with_bias(loaded->dlpi_addr);
    if (module == NULL) {
        fail_msg("'%s' at %#llx is missing", loaded->dlpi_name,
                 (unsigned long long)loaded->dlpi_addr);
    }
    assert_int_equal(module->header_count, loaded->dlpi_phnum);
    assert_int_equal(module->headers, (uint64_t)(uintptr_t)loaded->dlpi_phdr);
    for (unsigned i = 0; i < loaded->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = loaded->dlpi_phdr + i;
        const uint64_t addr = loaded->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            assert_true(module->text_start <= addr);
            assert_true(module->text_end >= addr + segment->p_memsz);
        } else if (segment->p_type == PT_LOAD) {
            assert_in_range(addr, module->start, module->end - segment->p_memsz);
        } else if (segment->p_type == PT_GNU_EH_FRAME) {
            assert_int_equal(module->eh_frame_hdr, addr);
        } else if (segment->p_type == PT_DYNAMIC) {
            assert_int_equal(module->dynamic, addr);
        }
    }
    g_compared++;
    return 0;
}

// A child is the same program, and may be read. It ends when `*end` is closed.
static pid_t begin_child(int *end)
{
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        (void)close(pipe_fds[1]);
        _exit(read(pipe_fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(pipe_fds[0]);
    *end = pipe_fds[1];
    return child;
}

static void end_child(pid_t child, int end)
{
    int status = 0;
    (void)close(end);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void modules_are_those_of_the_loader(void **state)
{
    (void)state;
    int end = -1;
    const pid_t child = begin_child(&end);
    struct err_info info = {0};
    const enum err err = target_process_open(&g_target, child, &kernel_calls_real, &info);
    assert_string_equal(info.text, "");
    assert_int_equal(err, ERR_OK);
    assert_int_equal(dl_iterate_phdr(compare_module, NULL), 0);
    assert_true(g_compared >= 3); // the program, libc, the loader
    uint64_t own = 0;
    assert_int_equal(target_process_read(&g_target, (uint64_t)(uintptr_t)&g_compared, &own, 4),
                     ERR_OK);
    assert_int_equal(target_process_read(&g_target, 8, &own, 1), ERR_NOT_FOUND);
    target_process_close(&g_target);
    end_child(child, end);
}

// Map the beginning of this program's file at `addr`, `pages` of it, or of a copy of the file.
static void map_program(uint8_t *addr, size_t pages, bool is_copy)
{
    CLEANUP(fd_closep) int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CLEANUP(fd_closep) int copy = memfd_create("copy", MFD_CLOEXEC);
    off_t from = 0;
    assert_true(sendfile(copy, file, &from, 1 << 30) > 0);
    assert_ptr_equal(mmap(addr, pages * page_bytes(), PROT_READ | PROT_EXEC,
                          MAP_PRIVATE | MAP_FIXED, is_copy ? copy : file, 0),
                     addr);
}

// Only the first pages of a file are mapped, and directly above them another file.
static void a_module_hides_no_other_one(void **state)
{
    (void)state;
    enum {
        PAGES = 512, // more than the program has
        FIRST = 2,
    };
    int end = -1;
    struct err_info info = {0};
    struct target_process target = {0};
    uint8_t *room = mmap(NULL, PAGES * page_bytes(), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(room, MAP_FAILED);
    map_program(room, FIRST, true);
    uint8_t *above = room + FIRST * page_bytes();
    map_program(above, PAGES / 2, false);
    const pid_t child = begin_child(&end);
    assert_int_equal(target_process_open(&target, child, &kernel_calls_real, &info), ERR_OK);
    bool is_found = false;
    for (size_t i = 0; i < target.modules.len; i++) {
        const struct target_module *module = target.modules.items + i;
        is_found = is_found || module->start == (uint64_t)(uintptr_t)above;
        if (i > 0) {
            assert_true(module->is_vdso || module[-1].is_vdso || module[-1].end <= module->start);
        }
    }
    assert_true(is_found);
    target_process_close(&target);
    end_child(child, end);
    assert_int_equal(munmap(room, PAGES * page_bytes()), 0);
}

enum {
    GAP_TEXT = 0, // in units of PAGE_LARGEST: where parts of a module are, and how long it is
    GAP_START = 1,
    GAP_DATA = 3,
    GAP_END = 4,
};

// Make a file of two segments with room between them, as linkers for AArch64 leave it.
static int make_gap_file(void)
{
    const struct {
        Elf64_Ehdr file;
        Elf64_Phdr segments[2];
    } head = {
        .file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                 .e_type = ET_DYN,
                 .e_machine = MACHINE_ELF,
                 .e_phoff = sizeof(head.file),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = ARRAY_LEN(head.segments)},
        .segments = {{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = PAGE_LARGEST},
                     {.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_W,
                      .p_offset = PAGE_LARGEST,
                      .p_vaddr = GAP_DATA * PAGE_LARGEST,
                      .p_memsz = PAGE_LARGEST}},
    };
    const int file = memfd_create("gap", MFD_CLOEXEC);
    assert_int_equal(write(file, &head, sizeof(head)), sizeof(head));
    assert_int_equal(ftruncate(file, (off_t)(2 * PAGE_LARGEST)), 0);
    return file;
}

static void map_part(uint8_t *room, unsigned at, int protection, int file, size_t offset)
{
    assert_ptr_not_equal(mmap(room + at * PAGE_LARGEST, PAGE_LARGEST, protection,
                              MAP_PRIVATE | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0), file,
                              (off_t)offset),
                         MAP_FAILED);
}

static void what_is_between_two_segments_ends_no_module(void **state)
{
    (void)state;
    enum {
        NOTHING,
        UNNAMED,
        PLAIN_FILE,
        MODULE, // as large as its text
        WHATS,
    };
    CLEANUP(fd_closep) int file = make_gap_file();
    CLEANUP(fd_closep) int module = make_gap_file();
    CLEANUP(fd_closep) int plain = memfd_create("plain", MFD_CLOEXEC);
    assert_int_equal(ftruncate(plain, (off_t)PAGE_LARGEST), 0);
    const int files[WHATS] = {[UNNAMED] = -1, [PLAIN_FILE] = plain, [MODULE] = module};
    for (unsigned i = 0; i < 2 * WHATS; i++) {
        const unsigned what = i / 2;
        const bool has_data = i % 2 == 0; // else something else is where it should be
        int end = -1;
        struct err_info info = {0};
        struct target_process target = {0};
        uint8_t *room = mmap(NULL, (GAP_END + 1) * PAGE_LARGEST, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(room, MAP_FAILED);
        uint8_t *start = (uint8_t *)page_end_of((uint64_t)(uintptr_t)room, PAGE_LARGEST);
        map_part(start, GAP_TEXT, PROT_READ | PROT_EXEC, file, 0);
        if (what != NOTHING) {
            map_part(start, GAP_START, PROT_READ | PROT_EXEC, files[what], 0);
        }
        map_part(start, GAP_DATA, PROT_READ | PROT_WRITE, has_data ? file : plain,
                 has_data ? PAGE_LARGEST : 0);
        const pid_t child = begin_child(&end);
        assert_int_equal(target_process_open(&target, child, &kernel_calls_real, &info), ERR_OK);
        const struct target_module *found = module_at(&target, (uint64_t)(uintptr_t)start);
        assert_non_null(found);
        const unsigned expected = has_data ? GAP_END : what >= PLAIN_FILE ? GAP_START : GAP_DATA;
        assert_int_equal(found->end, (uint64_t)(uintptr_t)start + expected * PAGE_LARGEST);
        assert_int_equal(found->text_end, (uint64_t)(uintptr_t)start + PAGE_LARGEST);
        found = module_at(&target, (uint64_t)(uintptr_t)start + GAP_START * PAGE_LARGEST);
        assert_int_equal(found != NULL, what == MODULE);
        target_process_close(&target);
        end_child(child, end);
        assert_int_equal(munmap(room, (GAP_END + 1) * PAGE_LARGEST), 0);
    }
}

static struct address_range vdso_here(void)
{
    const uint64_t start = getauxval(AT_SYSINFO_EHDR);
    const Elf64_Ehdr *file = (const Elf64_Ehdr *)start;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(start + file->e_phoff);
    uint64_t end = start;
    for (unsigned i = 0; i < file->e_phnum; i++) {
        end = segments[i].p_type == PT_LOAD
                  ? max_u64(end, page_end(start + segments[i].p_vaddr + segments[i].p_memsz))
                  : end;
    }
    return (struct address_range){.start = start, .end = end};
}

// The kernel maps it where it finds room: between a file's segments, too.
static void the_vdso_is_found_within_a_module(void **state)
{
    (void)state;
    enum {
        PAGES = 1024, // more than the program has
    };
    const struct address_range vdso = vdso_here();
    const size_t bytes = vdso.end - vdso.start;
    struct target_process target = {0};
    struct err_info info = {0};
    int status = 0;
    int end = -1;
    uint8_t *room = mmap(NULL, PAGES * page_bytes(), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(room, MAP_FAILED);
    map_program(room, PAGES / 2, true);
    const pid_t usual = begin_child(&end);
    assert_int_equal(target_process_open(&target, usual, &kernel_calls_real, &info), ERR_OK);
    const struct target_module *around = module_at(&target, (uint64_t)(uintptr_t)room);
    assert_non_null(around);
    uint8_t *within = (uint8_t *)(uintptr_t)(around->end - bytes);
    assert_true((uint64_t)(uintptr_t)within >= around->text_end);
    target_process_close(&target);
    end_child(usual, end);
    const pid_t child = fork();
    if (child == 0) {
        (void)mremap((void *)vdso.start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, within);
        (void)raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(target_process_open(&target, child, &kernel_calls_real, &info), ERR_OK);
    const struct target_module *found = module_at(&target, (uint64_t)(uintptr_t)within);
    assert_true(found != NULL && found->is_vdso);
    assert_non_null(module_at(&target, (uint64_t)(uintptr_t)room));
    target_process_close(&target);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(munmap(room, PAGES * page_bytes()), 0);
}

static const struct target_module *g_hidden; // whose memory cannot be read

static ssize_t read_others(int fd, void *into, size_t len, off_t at)
{
    if ((uint64_t)at >= g_hidden->start && (uint64_t)at < g_hidden->start + page_bytes()) {
        errno = EIO;
        return -1;
    }
    return pread(fd, into, len, at);
}

static void a_module_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    int end = -1;
    const pid_t child = begin_child(&end);
    struct kernel_calls calls = kernel_calls_real;
    struct target_process target = {0};
    struct err_info info = {0};
    assert_int_equal(target_process_open(&target, child, &calls, &info), ERR_OK);
    assert_int_equal(target.unread.len, 0);
    const size_t count = target.modules.len;
    for (size_t i = 0; i < count; i++) {
        const struct target_module hidden = target.modules.items[i];
        CLEANUP(strbuf_release) struct strbuf path = {0};
        strbuf_append_text(&path, target_process_path(&target, hidden.path));
        g_hidden = &hidden;
        calls.read_at = read_others;
        assert_int_equal(target_process_refresh(&target, &info), ERR_OK);
        assert_int_equal(target.modules.len, count - 1);
        assert_int_equal(target.unread.len, 1);
        assert_string_equal(target_process_path(&target, target.unread.items[0]),
                            strbuf_text(&path));
        calls.read_at = pread;
        assert_int_equal(target_process_refresh(&target, &info), ERR_OK);
        assert_int_equal(target.unread.len, 0);
    }
    target_process_close(&target);
    end_child(child, end);
}

static void modules_beyond_the_limit_are_left_out(void **state)
{
    (void)state;
    enum {
        MAPPED = TARGET_MODULES_MAX + 10,
        PAGES = 64, // more than the program has
    };
    int end = -1;
    struct err_info info = {0};
    struct target_process target = {0};
    CLEANUP(fd_closep) int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const size_t bytes = (size_t)MAPPED * 2 * PAGES * page_bytes();
    uint8_t *room =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(room, MAP_FAILED);
    for (size_t i = 0; i < MAPPED; i++) {
        uint8_t *place = room + i * 2 * PAGES * page_bytes();
        assert_ptr_equal(mmap(place, PAGES * page_bytes(), PROT_READ | PROT_EXEC,
                              MAP_PRIVATE | MAP_FIXED, file, 0),
                         place);
    }
    const pid_t child = begin_child(&end);
    assert_int_equal(target_process_open(&target, child, &kernel_calls_real, &info), ERR_OK);
    assert_int_equal(target.modules.len, TARGET_MODULES_MAX);
    assert_true(target.has_more_modules);
    target_process_close(&target);
    end_child(child, end);
    assert_int_equal(munmap(room, bytes), 0);
    const pid_t other = begin_child(&end);
    assert_int_equal(target_process_open(&target, other, &kernel_calls_real, &info), ERR_OK);
    assert_false(target.has_more_modules);
    target_process_close(&target);
    end_child(other, end);
}

// A text of so many mappings stands for a process that has them: the kernel seldom permits it.
static int open_many_mappings(const char *path, int flags)
{
    const char *name = strrchr(path, '/');
    if (name == NULL || strcmp(name, "/maps") != 0) {
        return kernel_calls_real.open(path, flags);
    }
    const int file = memfd_create("maps", MFD_CLOEXEC);
    FILE *text = fdopen(dup(file), "w");
    assert_non_null(text);
    for (unsigned i = 1; i <= g_mappings; i++) {
        assert_true(fprintf(text, "%x0000-%x0000 r--p 00000000 00:00 0 \n", 2 * i, 2 * i + 1) > 0);
    }
    assert_int_equal(fclose(text), 0);
    return file;
}

static void a_process_with_too_many_mappings_is_refused(void **state)
{
    (void)state;
    int end = -1;
    const pid_t child = begin_child(&end);
    struct kernel_calls calls = kernel_calls_real;
    calls.open = open_many_mappings;
    for (unsigned more = 0; more <= 1; more++) {
        struct target_process target = {0};
        struct err_info info = {0};
        char sentence[128];
        (void)snprintf(sentence, sizeof(sentence),
                       "process %d has more than 262144 mappings; cairn reads no more", (int)child);
        g_mappings = TARGET_MAPPINGS_MAX + more;
        assert_int_equal(target_process_open(&target, child, &calls, &info),
                         more > 0 ? ERR_LIMIT : ERR_OK);
        assert_string_equal(info.text, more > 0 ? sentence : "");
        assert_int_equal(target.mappings.len, more > 0 ? 0 : TARGET_MAPPINGS_MAX);
        target_process_close(&target);
    }
    end_child(child, end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_are_those_of_the_loader),
        cmocka_unit_test(a_module_hides_no_other_one),
        cmocka_unit_test(what_is_between_two_segments_ends_no_module),
        cmocka_unit_test(the_vdso_is_found_within_a_module),
        cmocka_unit_test(a_module_that_cannot_be_read_is_named),
        cmocka_unit_test(modules_beyond_the_limit_are_left_out),
        cmocka_unit_test(a_process_with_too_many_mappings_is_refused),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
