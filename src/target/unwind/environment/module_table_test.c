// SPDX-License-Identifier: MIT
// Compares the module table with the loader's own list and with libelf.
#include "target/unwind/environment/module_table.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/page.h"
#include "target/unwind/unwind.h"

// On AArch64 the vDSO has no CFI since Linux 5.8.
static bool lacks_table(const char *path)
{
#if defined(__aarch64__)
    return strstr(path, "vdso") != NULL;
#else
    (void)path;
    return false;
#endif
}

static void same_build_id(const char *path, struct bytes ours)
{
    int fd = open(path[0] != 0 ? path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        assert_string_equal(strstr(path, "vdso") != NULL ? "vdso" : path, "vdso");
        return;
    }
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    assert_non_null(elf);
    const void *want = NULL;
    ssize_t len = dwelf_elf_gnu_build_id(elf, &want);
    assert_int_equal(ours.len, len > 0 ? len : 0);
    if (len > 0) {
        assert_memory_equal(ours.data, want, (size_t)len);
    }
    (void)elf_end(elf);
    (void)close(fd);
}

static void same_span(const struct module_span *a, const struct module_span *b)
{
    // For a segment, only its pages count.
    assert_true((a->start & ~(uint64_t)4095) == b->start);
    assert_true(a->headers.len > 0 && a->headers.len == b->headers.len);
    assert_true(a->bias == b->bias);
    assert_true(a->hdr_addr == b->hdr_addr);
    assert_string_equal(a->path, b->path);
}

static int compare_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    unsigned *count = context;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type != PT_LOAD || (load->p_flags & PF_X) == 0) {
            continue;
        }
        uint64_t code = info->dlpi_addr + load->p_vaddr;
        const uint64_t pcs[] = {code, code + load->p_memsz / 2, code + load->p_memsz - 1};
        for (unsigned k = 0; k < 3; k++) {
            struct module_span found;
            struct module_span listed;
            struct unwind_module module;
            struct eh_table table;
            assert_true(module_table_find(pcs[k], &found));
            assert_true(module_table_find_listed(pcs[k], &listed));
            assert_true(unwind_find_module(pcs[k], &module));
            same_span(&found, &listed);
            assert_true(found.bias == info->dlpi_addr);
            assert_true(module.bias == found.bias && module.start == found.start);
            assert_string_equal(found.path, info->dlpi_name);
            const bool has_table = !lacks_table(found.path);
            assert_int_equal(module_table_unwind(&found, &table), has_table);
            assert_int_equal(module_table_unwind(&listed, &table), has_table);
            same_build_id(found.path, module.build_id);
        }
        (*count)++;
    }
    return 0;
}

static void every_loaded_module_is_found_both_ways(void **state)
{
    (void)state;
    unsigned count = 0;
    module_table_refresh();
    (void)dl_iterate_phdr(compare_module, &count);
    assert_true(count >= 4);
}

static void every_table_begins_with_an_entry(void **state)
{
    (void)state;
    const uint64_t pcs[] = {(uint64_t)(void *)&getpid, (uint64_t)(void *)&same_span,
                            (uint64_t)getauxval(AT_SYSINFO_EHDR) + 64};
    for (size_t i = 0; i < ARRAY_LEN(pcs); i++) {
        struct module_span span;
        struct eh_table table;
        if (pcs[i] == 64) {
            continue; // a kernel without a vDSO
        }
        assert_true(module_table_find(pcs[i], &span));
        if (lacks_table(span.path)) {
            continue;
        }
        assert_true(module_table_unwind(&span, &table));
        uint64_t entry = eh_first(&table);
        assert_true(entry > span.bias);
        assert_true(eh_next(&table, &entry));
    }
}

static void what_is_in_no_module_is_not_found(void **state)
{
    (void)state;
    void *heap = malloc(1);
    int local = 0;
    const uint64_t pcs[] = {0, 1, 4096, (uint64_t)heap, (uint64_t)&local, UINT64_MAX};
    module_table_refresh();
    for (size_t i = 0; i < ARRAY_LEN(pcs); i++) {
        struct module_span span = {.start = 77};
        struct unwind_module module;
        assert_false(module_table_find(pcs[i], &span));
        assert_false(module_table_find_listed(pcs[i], &span));
        assert_false(unwind_find_module(pcs[i], &module));
        assert_true(span.start == 77);
    }
    free(heap);
}

// Other mappings may be in a hole of what the kernel has mapped: the program and its loader.
static int no_hole_is_of_the_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    unsigned *holes = context;
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type != PT_LOAD) {
            continue;
        }
        const uint64_t start = page_start_of(info->dlpi_addr + load->p_vaddr, page_bytes);
        if (end != 0 && start > end) {
            const uint64_t pcs[] = {end, end + (start - end) / 2, start - 1};
            for (size_t k = 0; k < ARRAY_LEN(pcs); k++) {
                struct module_span span; // the kernel may have put its own there
                assert_true(!module_table_find(pcs[k], &span) || lacks_table(span.path));
                assert_true(!module_table_find_unread(pcs[k], &span) || span.headers.len == 0);
                assert_true(!module_table_find_listed(pcs[k], &span) || lacks_table(span.path));
                (*holes)++;
            }
        }
        end = page_end_of(info->dlpi_addr + load->p_vaddr + load->p_memsz, page_bytes);
    }
    return 0;
}

static int holes_of_loader_and_program(struct dl_phdr_info *info, size_t size, void *context)
{
    const bool is_of_kernel =
        info->dlpi_name[0] == 0 || info->dlpi_addr == (ElfW(Addr))_r_debug.r_ldbase;
    return is_of_kernel ? no_hole_is_of_the_module(info, size, context) : 0;
}

static void holes_are_of_no_module(void **state)
{
    (void)state;
    unsigned holes = 0;
    module_table_refresh();
    (void)dl_iterate_phdr(holes_of_loader_and_program, &holes);
    assert_true(holes > 0 || !HAS_HOLES || sysconf(_SC_PAGESIZE) == PAGE_LARGEST);
}

static void a_span_is_narrowed_to_a_run_of_segments(void **state)
{
    (void)state;
    const uint64_t bias = 0x7000000000;
    const Elf64_Phdr headers[] = {
        {.p_type = PT_LOAD, .p_vaddr = 0x10040, .p_memsz = 0xf00},
        {.p_type = PT_NOTE, .p_vaddr = 0x18000, .p_memsz = 64},
        {.p_type = PT_LOAD, .p_vaddr = 0x11000, .p_memsz = 0x1001}, // no free page before it
        {.p_type = PT_LOAD, .p_vaddr = 0x14080, .p_memsz = 0x10},   // one
        {.p_type = PT_LOAD, .p_vaddr = 0x15000, .p_memsz = 0x5000},
    };
    static const struct {
        uint64_t pc, start, end; // 0: in none
    } cases[] = {
        {0xffff, 0, 0},
        {0x10000, 0x10000, 0x12001},
        {0x12000, 0x10000, 0x12001},
        {0x12001, 0, 0},
        {0x13000, 0, 0},
        {0x14000, 0x14000, 0x18000},
        {0x17fff, 0x14000, 0x18000},
        {0x18000, 0, 0}, // the span ends before the segment
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct module_span span = {.start = bias + 0x10000,
                                   .end = bias + 0x18000,
                                   .bias = bias,
                                   .headers = {(const uint8_t *)headers, sizeof(headers)}};
        assert_int_equal(module_table_narrow(bias + cases[i].pc, &span), cases[i].end != 0);
        if (cases[i].end != 0) {
            assert_int_equal(span.start - bias, cases[i].start);
            assert_int_equal(span.end - bias, cases[i].end);
        }
    }
}

// Make a module of one page that ends with a note of a build-id of 20 bytes. The note's header
// states `note_bytes`, and the segment has `file_bytes` from the file.
static struct bytes build_id_of_page(uint8_t *page, uint64_t note_bytes, uint64_t file_bytes)
{
    enum {
        NOTE_BYTES = 36
    };
    const Elf64_Nhdr header = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
    uint8_t *note = page + PAGE_LARGEST - NOTE_BYTES;
    memcpy(note, &header, sizeof(header));
    memcpy(note + sizeof(header), "GNU", 4);
    memset(note + sizeof(header) + 4, 0xab, 20);
    const Elf64_Phdr headers[] = {
        {.p_type = PT_LOAD, .p_filesz = file_bytes, .p_memsz = PAGE_LARGEST},
        {.p_type = PT_NOTE, .p_vaddr = PAGE_LARGEST - NOTE_BYTES, .p_filesz = note_bytes},
    };
    const struct module_span span = {.start = (uint64_t)page,
                                     .end = (uint64_t)page + PAGE_LARGEST,
                                     .bias = (uint64_t)page,
                                     .headers = {(const uint8_t *)headers, sizeof(headers)},
                                     .path = "page"};
    return module_table_build_id(&span);
}

// The memory behind the page cannot be read.
static void notes_that_leave_their_segment_are_not_read(void **state)
{
    (void)state;
    uint8_t *page =
        mmap(NULL, 2 * PAGE_LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(mprotect(page + PAGE_LARGEST, PAGE_LARGEST, PROT_NONE), 0);
    const struct bytes found = build_id_of_page(page, 36, PAGE_LARGEST);
    assert_int_equal(found.len, 20);
    assert_ptr_equal(found.data, page + PAGE_LARGEST - 20);
    assert_int_equal(build_id_of_page(page, 35, PAGE_LARGEST).len, 0); // its end is missing
    assert_int_equal(build_id_of_page(page, 0, PAGE_LARGEST).len, 0);
    const uint64_t too_long[] = {37, 40, PAGE_LARGEST, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(too_long); i++) {
        assert_int_equal(build_id_of_page(page, too_long[i], PAGE_LARGEST).len, 0);
    }
    assert_int_equal(build_id_of_page(page, 36, PAGE_LARGEST - 1).len, 0); // not all from the file
    assert_int_equal(build_id_of_page(page, 36, PAGE_LARGEST - 36).len, 0);
    assert_int_equal(munmap(page, 2 * PAGE_LARGEST), 0);
}

static void a_note_may_be_the_first_header(void **state)
{
    (void)state;
    static const struct {
        Elf64_Nhdr header;
        char name[4];
        uint8_t id[20];
    } note = {{.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID}, "GNU", {1, 2, 3}};
    const Elf64_Phdr headers[] = {
        {.p_type = PT_NOTE, .p_filesz = sizeof(note)},
        {.p_type = PT_LOAD, .p_filesz = sizeof(note), .p_memsz = sizeof(note)},
    };
    const struct module_span span = {.start = (uint64_t)&note,
                                     .end = (uint64_t)&note + sizeof(note),
                                     .bias = (uint64_t)&note,
                                     .headers = {(const uint8_t *)headers, sizeof(headers)},
                                     .path = "module"};
    const struct bytes found = module_table_build_id(&span);
    assert_int_equal(found.len, sizeof(note.id));
    assert_ptr_equal(found.data, note.id);
}

enum {
    FAR_PAGES = 6, // the last two cannot be read
    FAR_OFFSET = 2 * PAGE_LARGEST,
};

// Make a module as BOLT does, with its program headers behind the first page.
static size_t far_headers(uint8_t *module, uint64_t offset, uint64_t load_vaddr, uint64_t end)
{
    const Elf64_Ehdr file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                             .e_phoff = offset,
                             .e_phentsize = sizeof(Elf64_Phdr),
                             .e_phnum = 2};
    const Elf64_Phdr headers[] = {
        {.p_type = PT_LOAD, .p_vaddr = 0x10000, .p_filesz = PAGE_LARGEST},
        {.p_type = PT_LOAD,
         .p_offset = FAR_OFFSET,
         .p_vaddr = load_vaddr,
         .p_filesz = 2 * PAGE_LARGEST},
    };
    memcpy(module, &file, sizeof(file));
    memcpy(module + FAR_OFFSET, headers, sizeof(headers));
    const struct bytes found =
        module_table_headers((uint64_t)module, end == UINT64_MAX ? end : (uint64_t)module + end);
    assert_true(found.len == 0 || found.data == module + offset);
    return found.len;
}

static void headers_may_be_behind_the_first_page(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset;
        uint64_t load_vaddr;
        uint64_t end;
        bool is_found;
    } cases[] = {
        {FAR_OFFSET, 0x10000 + FAR_OFFSET, (uint64_t)FAR_PAGES * PAGE_LARGEST, true},
        {FAR_OFFSET, 0x10000 + FAR_OFFSET, UINT64_MAX, true},
        {FAR_OFFSET, 0x10000 + FAR_OFFSET, FAR_OFFSET + 2 * sizeof(Elf64_Phdr), true},
        {FAR_OFFSET, 0x10000 + FAR_OFFSET, FAR_OFFSET + 2 * sizeof(Elf64_Phdr) - 1, false},
        {FAR_OFFSET, 0x10000 + FAR_OFFSET, FAR_OFFSET - 1, false},
        {FAR_OFFSET, 0x10000 + FAR_OFFSET + PAGE_LARGEST, UINT64_MAX, false}, // mapped elsewhere
        {FAR_OFFSET + 4, 0x10000 + FAR_OFFSET, UINT64_MAX, false},
        {4 * PAGE_LARGEST, 0x10000 + FAR_OFFSET, UINT64_MAX, false}, // a hole
        {4 * PAGE_LARGEST - 64, 0x10000 + FAR_OFFSET, UINT64_MAX, false},
        {UINT64_MAX - 7, 0x10000 + FAR_OFFSET, UINT64_MAX, false},
    };
    uint8_t *module = mmap(NULL, (size_t)FAR_PAGES * PAGE_LARGEST, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(module, MAP_FAILED);
    assert_int_equal(mprotect(module + 4 * PAGE_LARGEST, 2 * PAGE_LARGEST, PROT_NONE), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t want = cases[i].is_found ? 2 * sizeof(Elf64_Phdr) : 0;
        assert_int_equal(far_headers(module, cases[i].offset, cases[i].load_vaddr, cases[i].end),
                         want);
    }
    assert_int_equal(munmap(module, (size_t)FAR_PAGES * PAGE_LARGEST), 0);
}

static void lists_follow_what_is_loaded(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        void *module = dlopen(LOADABLE_MODULE, RTLD_NOW);
        assert_non_null(module);
        uint64_t addr = (uint64_t)dlsym(module, "nodes");
        struct module_span span;
        assert_false(module_table_find_listed(addr, &span));
        module_table_refresh();
        assert_true(module_table_find_listed(addr, &span));
        assert_string_equal(span.path, LOADABLE_MODULE);
        assert_int_equal(dlclose(module), 0);
        module_table_refresh();
        assert_false(module_table_find_listed(addr, &span));
    }
}

int main(void)
{
    (void)elf_version(EV_CURRENT);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_loaded_module_is_found_both_ways),
        cmocka_unit_test(every_table_begins_with_an_entry),
        cmocka_unit_test(what_is_in_no_module_is_not_found),
        cmocka_unit_test(holes_are_of_no_module),
        cmocka_unit_test(a_span_is_narrowed_to_a_run_of_segments),
        cmocka_unit_test(notes_that_leave_their_segment_are_not_read),
        cmocka_unit_test(a_note_may_be_the_first_header),
        cmocka_unit_test(headers_may_be_behind_the_first_page),
        cmocka_unit_test(lists_follow_what_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
