// SPDX-License-Identifier: MIT
// agent_modules: modules that the recorder has listed, and those of a loader's list that is made up
// here: found, replaced, unloaded, guessed, and more than there is room for.
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/page.h"
#include "target/agent/agent_modules.h"
#include "target/preload/process/process.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/environment/module_copy.h"
#include "target/unwind/environment/module_table.h"
#include "target/unwind/environment/rule_cache.h"
#include "target/unwind/unwind.h"
#include "thread_way.h"

#define PAGE         ((uint64_t)PAGE_LARGEST) // a part that is protected alone
#define MODULE_BYTES (4 * PAGE)

enum {
    MAPS_MAX = AGENT_MODULES_MAX + 8,
    HEADER_COUNT = 5, // of a module that is made up
};

struct agent_page g_agent_page;
static unsigned g_flushes;
static unsigned g_unloads;

void unwind_flush(void)
{
    g_flushes++;
}

void process_code_unloaded(void)
{
    g_unloads++;
}

struct fixture {
    struct agent_attachment *attachment;
    struct r_debug loader;
    struct r_debug_extended *next; // behind it, if its version says so
    struct r_debug_extended apart; // of another namespace
    struct link_map maps[MAPS_MAX];
    uint8_t *memory; // of modules
    size_t used;
};
static struct fixture f;

static int set_up(void **state)
{
    (void)state;
    f = (struct fixture){.attachment = calloc(1, sizeof(*f.attachment)),
                         .loader.r_state = RT_CONSISTENT};
    assert_non_null(f.attachment);
    f.memory =
        mmap(NULL, 64 * MODULE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f.memory != MAP_FAILED);
    f.attachment->paths_bytes = 1; // the empty path
    g_agent_page = (struct agent_page){.attachment = (uint64_t)f.attachment,
                                       .loader_list = (uint64_t)&f.loader};
    g_flushes = 0;
    g_unloads = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(f.attachment);
    return munmap(f.memory, 64 * MODULE_BYTES);
}

struct note {
    Elf64_Nhdr head;
    char name[4];
    char build_id[8];
};

// Make a module whose lowest address in its file is `lowest`, and put it into the loader's list.
// Its data end 100 bytes before its last page does.
static uint64_t load(size_t place, const char *path, uint64_t lowest)
{
    uint8_t *start = f.memory + 2 * f.used++ * MODULE_BYTES;
    const Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                             .e_phoff = sizeof(Elf64_Ehdr),
                             .e_phentsize = sizeof(Elf64_Phdr),
                             .e_phnum = HEADER_COUNT};
    const Elf64_Phdr headers[] = {
        {.p_type = PT_LOAD, .p_vaddr = lowest + 16, .p_filesz = PAGE, .p_memsz = PAGE},
        {.p_type = PT_DYNAMIC, .p_vaddr = lowest + 2 * PAGE + 64},
        {.p_type = PT_GNU_EH_FRAME, .p_vaddr = lowest + PAGE + 8},
        {.p_type = PT_LOAD, .p_vaddr = lowest + 3 * PAGE, .p_memsz = PAGE - 100},
        {.p_type = PT_NOTE, .p_vaddr = lowest + 1024, .p_filesz = sizeof(struct note)},
    };
    _Static_assert(sizeof(headers) == HEADER_COUNT * sizeof(headers[0]), "all of them");
    const struct note note = {{4, 8, NT_GNU_BUILD_ID}, "GNU", "of this"};
    memcpy(start + 1024, &note, sizeof(note));
    memcpy(start, &head, sizeof(head));
    memcpy(start + sizeof(head), headers, sizeof(headers));
    static char paths[64][32];
    (void)snprintf(paths[f.used], sizeof(paths[0]), "%s", path);
    f.maps[place] = (struct link_map){.l_addr = (uint64_t)start - lowest,
                                      .l_name = paths[f.used],
                                      .l_ld = (void *)(start + 2 * PAGE + 64)};
    return (uint64_t)start;
}

// Link the first `count` modules.
static void link_maps(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        f.maps[i].l_next = i + 1 < count ? &f.maps[i + 1] : NULL;
    }
    f.loader.r_map = count > 0 ? f.maps : NULL;
}

static struct agent_module_list *current(void)
{
    return &f.attachment->lists[atomic_load(&f.attachment->list_count) % 2];
}

// As the recorder lists them.
static void list_module(uint64_t start, uint64_t end, uint32_t flags)
{
    struct agent_module_list *list = current();
    list->modules[list->count++] =
        (struct agent_module){.start = start, .end = end, .bias = start - 0x100, .flags = flags};
}

static void pcs_are_found_within_modules_only(void **state)
{
    (void)state;
    struct module_span span = {.start = 77};
    assert_false(module_table_find(0x1000, &span));
    list_module(0x1000, 0x3000, AGENT_MODULE_STAYS);
    list_module(0x3000, 0x4000, 0);
    list_module(0x8000, 0x9000, AGENT_MODULE_STAYS);
    static const struct {
        uint64_t pc;
        uint64_t start; // 0: none
        bool stays;
    } cases[] = {
        {0, 0, false},          {0xfff, 0, false},       {0x1000, 0x1000, true},
        {0x2fff, 0x1000, true}, {0x3000, 0x3000, false}, {0x3fff, 0x3000, false},
        {0x4000, 0, false},     {0x7fff, 0, false},      {0x8000, 0x8000, true},
        {0x8fff, 0x8000, true}, {0x9000, 0, false},      {UINT64_MAX, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        span = (struct module_span){.start = 77};
        assert_int_equal(module_table_find(cases[i].pc, &span), cases[i].start != 0);
        assert_int_equal(span.start, cases[i].start != 0 ? cases[i].start : 77);
        assert_int_equal(module_table_find_unread(cases[i].pc, &span), cases[i].start != 0);
        assert_int_equal(module_table_stays(cases[i].pc), cases[i].stays);
    }
    assert_true(module_table_is_listed());
    assert_true(module_table_needs_refresh());
}

static void a_span_has_what_the_list_has(void **state)
{
    (void)state;
    static const uint8_t tables[8];
    struct module_span span;
    list_module(0x1000, 0x3000, 0);
    memcpy(f.attachment->paths + 5, "/lib/x", 7);
    struct agent_module *module = &current()->modules[0];
    module->headers = (uint64_t)tables;
    module->header_count = 2;
    module->eh_frame_hdr = (uint64_t)tables;
    module->path = 5;
    assert_true(module_table_find(0x2000, &span));
    assert_int_equal(span.end, 0x3000);
    assert_int_equal(span.bias, 0x1000 - 0x100);
    assert_ptr_equal(span.headers.data, tables);
    assert_int_equal(span.headers.len, 2 * sizeof(Elf64_Phdr));
    assert_int_equal(span.hdr_addr, (uint64_t)tables);
    assert_null(span.tables.data); // they are in the module
    assert_int_equal(span.tables.len, 0);
    assert_string_equal(span.path, "/lib/x");
    module->tables_bytes = sizeof(tables);
    assert_true(module_table_find(0x2000, &span));
    assert_ptr_equal(span.tables.data, tables);
    assert_int_equal(span.tables.len, sizeof(tables));
}

// The kernel may map the vDSO, or the program its own code, between two segments of the loader.
static void what_is_in_a_hole_is_not_of_the_module_around_it(void **state)
{
    (void)state;
    static const Elf64_Phdr headers[] = {
        {.p_type = PT_LOAD, .p_vaddr = 0x100, .p_memsz = 0x1000},
        {.p_type = PT_LOAD, .p_vaddr = 0x7100, .p_memsz = 0x1000},
    };
    struct module_span span;
    list_module(0x1000, 0x9000, AGENT_MODULE_STAYS);
    list_module(0x4000, 0x5000, AGENT_MODULE_STAYS);
    current()->modules[0].headers = (uint64_t)headers;
    current()->modules[0].header_count = ARRAY_LEN(headers);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(current()->count, 2);
        assert_true(module_table_find(0x1fff, &span));
        assert_int_equal(span.start, 0x1000);
        assert_int_equal(span.end, 0x2000);
        assert_true(module_table_find(0x4000, &span));
        assert_int_equal(span.start, 0x4000);
        assert_false(module_table_find(0x3000, &span));
        module_table_refresh(); // both stay
    }
}

// Lists of the loader, one after the other.
static void the_loader_s_list_is_followed(void **state)
{
    (void)state;
    struct module_span span;
    const uint64_t first = load(0, "/lib/first", 0);
    const uint64_t second = load(1, "/lib/firs", 0);
    list_module(0x1000, 0x3000, AGENT_MODULE_STAYS);
    list_module(0x3000, 0x4000, 0); // the loader does not have it
    link_maps(2);
    module_table_refresh();
    assert_int_equal(atomic_load(&f.attachment->list_count), 1);
    assert_int_equal(current()->count, 3);
    assert_true(module_table_stays(0x1000));
    assert_false(module_table_find(0x3000, &span));
    assert_int_equal(g_agent_page.load_count, 1);
    assert_int_equal(g_flushes, 1);
    assert_int_equal(g_unloads, 1);
    assert_true(module_table_find(first, &span));
    assert_int_equal(span.start, first);
    assert_int_equal(span.end, first + MODULE_BYTES - 100);
    assert_int_equal(span.bias, first);
    assert_int_equal(span.hdr_addr, first + PAGE + 8);
    assert_int_equal(span.headers.len, HEADER_COUNT * sizeof(Elf64_Phdr));
    assert_string_equal(span.path, "/lib/first");
    assert_false(module_table_stays(first));
    assert_true(module_table_find(second + MODULE_BYTES - 101, &span));
    assert_string_equal(span.path, "/lib/firs");
    assert_false(module_table_find(second + MODULE_BYTES - 100, &span));
    // The same once more: nothing is new and nothing is gone.
    const uint32_t paths_bytes = f.attachment->paths_bytes;
    module_table_refresh();
    assert_int_equal(atomic_load(&f.attachment->list_count), 2);
    assert_int_equal(g_agent_page.load_count, 1);
    assert_int_equal(g_flushes, 1);
    assert_int_equal(f.attachment->paths_bytes, paths_bytes);
    // The first one is unloaded, then the other is replaced in its place.
    f.loader.r_map = &f.maps[1];
    module_table_refresh();
    assert_int_equal(g_agent_page.load_count, 1);
    assert_int_equal(g_flushes, 2);
    assert_int_equal(g_unloads, 2);
    assert_false(module_table_find(first, &span));
    assert_true(module_table_find(second, &span));
    f.maps[1].l_name = f.maps[0].l_name;
    module_table_refresh();
    assert_int_equal(g_agent_page.load_count, 2);
    assert_int_equal(g_flushes, 3);
    f.maps[1].l_name = NULL;
    module_table_refresh();
    assert_true(module_table_find(second, &span));
    assert_string_equal(span.path, "");
}

// The same file by two paths, and others in its place.
static void a_path_stays_while_its_file_does(void **state)
{
    (void)state;
    static const struct {
        const char *loader_path;
        uint64_t moved;
        const char *path;
    } cases[] = {
        {"/lib/x.so", 0, "/usr/lib/x.so"}, {"x.so", 0, "/usr/lib/x.so"},
        {"/lib/ax.so", 0, "/lib/ax.so"},   {"/lib/x.so.1", 0, "/lib/x.so.1"},
        {"/lib/x.s", 0, "/lib/x.s"},       {"/lib/x.so", PAGE, "/lib/x.so"}, // of another bias
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
        struct module_span span;
        const uint64_t start = load(0, cases[i].loader_path, 0);
        list_module(start, start + MODULE_BYTES, AGENT_MODULE_ALLOCATES);
        memcpy(f.attachment->paths + 1, "/usr/lib/x.so", 14);
        f.attachment->paths_bytes = 15;
        current()->modules[0].path = 1;
        current()->modules[0].bias = start + cases[i].moved;
        link_maps(1);
        module_table_refresh();
        assert_true(module_table_find(start, &span));
        assert_string_equal(span.path, cases[i].path);
        const bool is_same = strcmp(cases[i].path, "/usr/lib/x.so") == 0;
        assert_int_equal(agent_module_flags_at(start), is_same ? AGENT_MODULE_ALLOCATES : 0);
        assert_int_equal(agent_module_flags_at(start + MODULE_BYTES), 0);
    }
}

static void a_list_that_changes_is_not_read(void **state)
{
    (void)state;
    (void)load(0, "/lib/a", 0);
    link_maps(1);
    f.loader.r_state = RT_ADD;
    module_table_refresh();
    assert_int_equal(atomic_load(&f.attachment->list_count), 0);
    f.loader.r_state = RT_CONSISTENT;
    g_agent_page.loader_list = 0; // a static executable
    module_table_refresh();
    assert_int_equal(atomic_load(&f.attachment->list_count), 0);
    assert_int_equal(g_agent_page.load_count, 0);
}

static void modules_of_all_namespaces_are_listed(void **state)
{
    (void)state;
    struct module_span span;
    const uint64_t here = load(0, "/lib/a", 0);
    link_maps(1);
    const uint64_t there = load(1, "/lib/a", 0);
    f.next = &f.apart;
    f.apart.base = (struct r_debug){.r_version = 2, .r_state = RT_CONSISTENT, .r_map = &f.maps[1]};
    f.loader.r_version = 1; // of a loader that does not link its lists
    module_table_refresh();
    assert_true(module_table_find(here, &span));
    assert_false(module_table_find(there, &span));
    f.loader.r_version = 2;
    module_table_refresh();
    assert_true(module_table_find(here, &span));
    assert_true(module_table_find(there, &span));
    const uint32_t count = atomic_load(&f.attachment->list_count);
    f.apart.base.r_state = RT_DELETE;
    module_table_refresh();
    assert_int_equal(atomic_load(&f.attachment->list_count), count);
    f.apart.base.r_state = RT_CONSISTENT;
    f.apart.base.r_map = NULL; // it is empty
    module_table_refresh();
    assert_false(module_table_find(there, &span));
    f.apart.r_next = &f.apart; // overwritten by the program
    module_table_refresh();
    assert_true(module_table_find(here, &span));
}

// Modules that were linked for another address, one with a hole between its parts, and such as have
// no headers.
static void a_module_is_described_by_its_own_headers(void **state)
{
    (void)state;
    struct module_span span;
    const uint64_t moved = load(0, "/lib/moved", 16 * PAGE);
    const uint64_t damaged = load(1, "/lib/damaged", 0);
    const uint64_t strange = load(2, "/lib/strange", 0);
    const uint64_t last = load(3, "/lib/last", 0);
    assert_int_equal(mprotect((void *)(moved + PAGE), PAGE, PROT_NONE), 0);
    memset((void *)damaged, 0, 4);
    f.maps[2].l_ld = (void *)(strange + 3 * PAGE); // its header names another place
    link_maps(4);
    module_table_refresh();
    assert_true(module_table_find(moved, &span));
    assert_int_equal(span.start, moved);
    assert_int_equal(span.end, moved + MODULE_BYTES - 100);
    assert_int_equal(span.bias, moved - 16 * PAGE);
    assert_int_equal(span.hdr_addr, moved + PAGE + 8);
    assert_false(module_table_find(damaged + PAGE, &span));
    assert_false(module_table_find(strange + PAGE, &span));
    assert_true(module_table_find(last, &span));
    assert_string_equal(span.path, "/lib/last");
}

// The recorder lists the executable, which the loader lists, too, without a path.
static void a_module_that_stays_is_listed_once(void **state)
{
    (void)state;
    struct module_span span;
    const uint64_t program = load(0, "", 0);
    list_module(program, program + MODULE_BYTES, AGENT_MODULE_STAYS);
    struct agent_module *listed = &current()->modules[0];
    listed->bias = program;
    listed->eh_frame_hdr = 0x1234;
    link_maps(1);
    module_table_refresh();
    assert_int_equal(current()->count, 1);
    assert_true(module_table_find(program, &span));
    assert_int_equal(span.hdr_addr, 0x1234);
    // Another module that begins there is not added either: modules do not overlap.
    current()->modules[0].bias = program + PAGE;
    module_table_refresh();
    assert_int_equal(current()->count, 1);
    assert_int_equal(g_flushes, 0);
}

#ifndef WITHOUT_OWN_KERNEL // an emulator copies no memory of its own process
// A guessed pc may be in a module that is closed meanwhile. Its names are those of the list.
static void a_guessed_module_has_the_names_of_the_list(void **state)
{
    (void)state;
    struct module_span span;
    struct module_copy copy;
    struct bytes build_id;
    const uint64_t moved = load(0, "/lib/moved", 16 * PAGE);
    link_maps(1);
    module_table_refresh();
    assert_true(module_table_find_unread(moved + PAGE, &span));
    assert_true(module_copy_open(&span, &copy));
    assert_true(module_copy_describe(&copy, &build_id));
    assert_string_equal(copy.span.path, "/lib/moved");
    assert_int_equal(copy.span.bias, moved - 16 * PAGE);
    assert_int_equal(build_id.len, sizeof("of this"));
    assert_memory_equal(build_id.data, "of this", sizeof("of this"));
    assert_true((uint64_t)build_id.data - moved >= MODULE_BYTES); // it is a copy
    module_copy_close(&copy.table);
    // Another one takes its place before the names have been read.
    assert_true(module_copy_open(&span, &copy));
    (void)snprintf(f.maps[0].l_name, 16, "/lib/other");
    module_table_refresh();
    assert_false(module_copy_describe(&copy, &build_id));
    module_copy_close(&copy.table);
}

static int find_own_tables(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct agent_module *module = context;
    const struct bytes headers = {(const uint8_t *)info->dlpi_phdr,
                                  info->dlpi_phnum * sizeof(Elf64_Phdr)};
    size_t index = 0;
    const Elf64_Phdr *header = module_table_next_header(headers, PT_GNU_EH_FRAME, &index);
    assert_non_null(header);
    module->eh_frame_hdr = info->dlpi_addr + header->p_vaddr;
    index = 0;
    while ((header = module_table_next_header(headers, PT_LOAD, &index)) != NULL) {
        const uint64_t before = module->eh_frame_hdr - info->dlpi_addr - header->p_vaddr;
        if (before < header->p_filesz) {
            module->tables_bytes = (uint32_t)(header->p_filesz - before);
        }
    }
    return 1; // only of the program
}

static uint64_t rule_of_pc(uint64_t pc, bool is_guess)
{
    rule_cache_flush();
    struct rule_view view = rule_cache_view();
    view.is_guess = is_guess;
    return rule_cache_get(view, pc);
}

static NOINLINE uint64_t return_address(void)
{
    return (uint64_t)__builtin_return_address(0);
}

// A page of the program's own code, as a module whose tables are elsewhere.
static void guesses_use_the_tables_that_were_made(void **state)
{
    (void)state;
    const uint64_t pc = return_address(); // at its entry a function has stored nothing yet
    struct agent_module module = {.start = grain_start(pc)};
    module.end = module.start + PAGE_GRAIN;
    assert_int_equal(dl_iterate_phdr(find_own_tables, &module), 1);
    assert_true(module.eh_frame_hdr >= module.end);
    struct agent_module_list *list = current();
    list->modules[list->count++] = module;
    const uint64_t rule = rule_of_pc(pc, false);
    assert_int_equal(rule & RULE_STOP, 0);
    assert_int_equal(rule_of_pc(pc, true), rule);
}
#endif

static void made_tables_stay_with_their_module(void **state)
{
    (void)state;
    struct module_span span;
    const uint64_t start = load(0, "/lib/x", 0);
    list_module(start, start + MODULE_BYTES, 0);
    memcpy(f.attachment->paths + 1, "/usr/lib/x", 11);
    f.attachment->paths_bytes = 12;
    struct agent_module *listed = &current()->modules[0];
    listed->path = 1;
    listed->bias = start;
    listed->eh_frame_hdr = 0x1234;
    listed->tables_bytes = 16;
    link_maps(1);
    module_table_refresh();
    assert_true(module_table_find(start, &span));
    assert_int_equal(span.hdr_addr, 0x1234);
    assert_int_equal(span.tables.len, 16);
    // Not with another one in its place.
    (void)snprintf(f.maps[0].l_name, 16, "/lib/y");
    module_table_refresh();
    assert_true(module_table_find(start, &span));
    assert_int_equal(span.hdr_addr, start + PAGE + 8);
    assert_null(span.tables.data);
}

static void lists_and_paths_have_bounds(void **state)
{
    (void)state;
    struct module_span span;
    const uint64_t first = load(0, "/lib/a", 0);
    const uint64_t second = load(1, "/lib/b", 0);
    link_maps(2);
    // Room for one of the paths, then for none.
    f.attachment->paths_bytes = AGENT_PATHS_BYTES - 7;
    module_table_refresh();
    assert_int_equal(f.attachment->paths_bytes, AGENT_PATHS_BYTES);
    assert_true(module_table_find(first, &span));
    assert_string_equal(span.path, "/lib/a");
    assert_true(module_table_find(second, &span));
    assert_string_equal(span.path, "");
    // As many modules as there is room for, with a place for one of the loader's.
    struct agent_module_list *list = current();
    list->count = 0;
    for (uint64_t i = 1; i < AGENT_MODULES_MAX; i++) {
        list_module(i * PAGE, (i + 1) * PAGE, AGENT_MODULE_STAYS);
    }
    module_table_refresh();
    assert_int_equal(current()->count, AGENT_MODULES_MAX);
    assert_true(module_table_find(first, &span));
    assert_false(module_table_find(second, &span));
    assert_true(module_table_stays(PAGE));
    assert_true(module_table_stays(AGENT_MODULES_MAX * PAGE - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pcs_are_found_within_modules_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_span_has_what_the_list_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_in_a_hole_is_not_of_the_module_around_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_loader_s_list_is_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_stays_while_its_file_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_that_changes_is_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(modules_of_all_namespaces_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_module_is_described_by_its_own_headers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_module_that_stays_is_listed_once, set_up, tear_down),
#ifndef WITHOUT_OWN_KERNEL
        cmocka_unit_test_setup_teardown(a_guessed_module_has_the_names_of_the_list, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(guesses_use_the_tables_that_were_made, set_up, tear_down),
#endif
        cmocka_unit_test_setup_teardown(made_tables_stay_with_their_module, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_and_paths_have_bounds, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
