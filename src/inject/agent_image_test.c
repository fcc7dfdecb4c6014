// SPDX-License-Identifier: MIT
// agent_image: an object made byte by byte, its memory at two addresses, and objects that are
// refused for one field each.
#include "inject/agent_image.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent_image_arch.h"
#include "base/compiler.h"

#define PAGE UINT64_C(4096)

enum {
    SEGMENTS = 4, // text, data, a note, an empty one to load
    SECTIONS = 6, // none, relocations, some that are not loaded, symbols, names, .symtab
    RELOCATIONS = 2,
    DATA_ADDR = 3 * PAGE + 16, // of the second segment
    DATA_BYTES = 64,           // in the file
    DATA_ALL_BYTES = 2 * PAGE, // in memory
};

struct object {
    Elf64_Ehdr head;
    Elf64_Phdr segments[AGENT_SEGMENTS_MAX + 1];
    Elf64_Shdr sections[SECTIONS];
    Elf64_Rela relocations[RELOCATIONS];
    Elf64_Sym symbols[4];
    Elf64_Sym static_symbols[2];
    char names[32];
    uint8_t data[DATA_BYTES];
};

#define AT(field) offsetof(struct object, field)

static struct object make_object(void)
{
    struct object o = {
        .head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                 .e_type = ET_DYN,
                 .e_machine = AGENT_IMAGE_MACHINE,
                 .e_phoff = AT(segments),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = SEGMENTS,
                 .e_shoff = AT(sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = SECTIONS},
        .segments =
            {{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = AT(data), .p_memsz = AT(data)},
             {.p_type = PT_LOAD,
              .p_flags = PF_R | PF_W,
              .p_offset = AT(data),
              .p_vaddr = DATA_ADDR,
              .p_filesz = DATA_BYTES,
              .p_memsz = DATA_ALL_BYTES},
             {.p_type = PT_NOTE, .p_vaddr = 1, .p_memsz = 1, .p_filesz = 9},
             {.p_type = PT_LOAD}},
        .sections = {{.sh_type = SHT_NULL},
                     {.sh_type = SHT_RELA,
                      .sh_flags = SHF_ALLOC,
                      .sh_offset = AT(relocations),
                      .sh_size = sizeof(o.relocations)},
                     {.sh_type = SHT_RELA, .sh_offset = UINT64_MAX, .sh_size = 24}, // not loaded
                     {.sh_type = SHT_DYNSYM,
                      .sh_link = 4,
                      .sh_offset = AT(symbols),
                      .sh_size = sizeof(o.symbols)},
                     {.sh_type = SHT_STRTAB, .sh_offset = AT(names)},
                     {.sh_type = SHT_SYMTAB,
                      .sh_link = 4,
                      .sh_offset = AT(static_symbols),
                      .sh_size = sizeof(o.static_symbols)}},
        .relocations =
            {{.r_offset = DATA_ADDR + 8, .r_info = AGENT_IMAGE_RELATIVE, .r_addend = 0x123},
             {.r_offset = DATA_ADDR + 24, .r_info = AGENT_IMAGE_RELATIVE, .r_addend = 0x456}},
        .symbols = {{0},
                    {.st_name = 1, .st_shndx = SHN_UNDEF, .st_value = 7},
                    {.st_name = 5, .st_shndx = 1, .st_value = 0x50},
                    {.st_name = 1, .st_shndx = 1, .st_value = 0x60}},
        .static_symbols = {{0}, {.st_name = 9, .st_shndx = 1, .st_value = 0x70}},
        .names = "\0one\0two\0six",
    };
    for (size_t i = 0; i < DATA_BYTES; i++) {
        o.data[i] = (uint8_t)(i + 1);
    }
    return o;
}

static struct bytes bytes_of(const struct object *object)
{
    return (struct bytes){(const uint8_t *)object, sizeof(*object)};
}

static uint64_t word_at(const struct agent_image *image, uint64_t offset)
{
    uint64_t word;
    memcpy(&word, image->memory + offset, sizeof(word));
    return word;
}

static void an_object_is_laid_out_and_moved(void **state)
{
    (void)state;
    const struct object object = make_object();
    CLEANUP(agent_image_release) struct agent_image image = {0};
    assert_int_equal(agent_image_init(&image, bytes_of(&object), PAGE, NULL), ERR_OK);
    assert_int_equal(image.segment_count, 2);
    assert_int_equal(image.segments[0].start, 0);
    assert_int_equal(image.segments[0].end, (AT(data) + PAGE - 1) / PAGE * PAGE);
    assert_int_equal(image.segments[0].prot, PROT_READ | PROT_EXEC);
    assert_int_equal(image.segments[1].start, 3 * PAGE);
    assert_int_equal(image.segments[1].end, 6 * PAGE);
    assert_int_equal(image.segments[1].prot, PROT_READ | PROT_WRITE);
    assert_int_equal(image.span, 6 * PAGE);
    assert_memory_equal(image.memory, &object, AT(data));
    assert_memory_equal(image.memory + DATA_ADDR, object.data, DATA_BYTES);
    for (size_t i = DATA_ADDR + DATA_BYTES; i < image.span; i++) {
        assert_int_equal(image.memory[i], 0);
    }
    static const uint64_t places[] = {0x7f0000000000, 0x10000};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        agent_image_relocate(&image, places[i]);
        assert_int_equal(word_at(&image, DATA_ADDR + 8), places[i] + 0x123);
        assert_int_equal(word_at(&image, DATA_ADDR + 24), places[i] + 0x456);
        assert_memory_equal(image.memory + DATA_ADDR, object.data, 8);
        assert_memory_equal(image.memory + DATA_ADDR + 16, object.data + 16, 8);
        assert_memory_equal(image.memory + DATA_ADDR + 32, object.data + 32, DATA_BYTES - 32);
    }
}

static void symbols_are_found_by_their_whole_name(void **state)
{
    (void)state;
    struct object object = make_object();
    assert_int_equal(agent_image_symbol(bytes_of(&object), "one"), 0x60); // the defined one
    assert_int_equal(agent_image_symbol(bytes_of(&object), "two"), 0x50);
    static const char *const others[] = {"on", "one2", "ne", "six", "seven"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_int_equal(agent_image_symbol(bytes_of(&object), others[i]), 0);
    }
    // A name that ends with the file.
    const size_t end = sizeof(object);
    object.sections[4].sh_offset = end - 5;
    memcpy((uint8_t *)&object + end - 4, "end", 4);
    assert_int_equal(agent_image_symbol(bytes_of(&object), "end"), 0x60);
    assert_int_equal(agent_image_symbol((struct bytes){(uint8_t *)&object, end - 1}, "end"), 0);
    object.sections[3].sh_link = UINT32_MAX;
    assert_int_equal(agent_image_symbol(bytes_of(&object), "end"), 0);
    object.sections[3].sh_link = 4;
    object.sections[3].sh_offset = end - sizeof(Elf64_Sym) + 1;
    assert_int_equal(agent_image_symbol(bytes_of(&object), "end"), 0);
    object.head.e_type = ET_EXEC;
    object.sections[3].sh_offset = AT(symbols);
    assert_int_equal(agent_image_symbol(bytes_of(&object), "end"), 0);
}

// One field of the object, set to a value.
static const struct {
    const char *what;
    size_t at;
    size_t bytes;
    uint64_t value;
    enum err expected;
} changes[] = {
#define CHANGE(field, value, expected)                                          \
    {                                                                           \
#        field, AT(field), sizeof(((struct object *)0)->field), value, expected \
    }
    CHANGE(head.e_ident[0], 0, ERR_INVALID),
    CHANGE(head.e_ident[EI_CLASS], ELFCLASS32, ERR_INVALID),
    CHANGE(head.e_machine, EM_386, ERR_INVALID),
    CHANGE(head.e_type, ET_EXEC, ERR_INVALID),
    CHANGE(head.e_phentsize, sizeof(Elf64_Phdr) + 1, ERR_INVALID),
    CHANGE(head.e_shentsize, sizeof(Elf64_Shdr) - 1, ERR_INVALID),
    CHANGE(head.e_phnum, 0, ERR_INVALID),
    CHANGE(head.e_shnum, 0, ERR_OK),
    CHANGE(head.e_phoff, sizeof(struct object) - SEGMENTS * sizeof(Elf64_Phdr) + 1, ERR_INVALID),
    CHANGE(head.e_phoff, UINT64_MAX - 50, ERR_INVALID),
    CHANGE(head.e_shoff, sizeof(struct object) - sizeof(Elf64_Shdr), ERR_INVALID),
    CHANGE(head.e_shoff, UINT64_MAX, ERR_INVALID),
    CHANGE(segments[0].p_memsz, AT(data) - 1, ERR_INVALID),
    CHANGE(segments[0].p_memsz, 3 * PAGE, ERR_OK),
    CHANGE(segments[0].p_memsz, 3 * PAGE + 1, ERR_INVALID), // into the next one's page
    CHANGE(segments[1].p_vaddr, (uint64_t)64 << 20, ERR_OK),
    CHANGE(segments[1].p_vaddr, ((uint64_t)64 << 20) + 1, ERR_INVALID),
    CHANGE(segments[1].p_memsz, (uint64_t)64 << 20, ERR_OK),
    CHANGE(segments[1].p_memsz, ((uint64_t)64 << 20) + 1, ERR_INVALID),
    CHANGE(segments[1].p_filesz, DATA_BYTES + 1, ERR_INVALID), // behind the end of the file
    CHANGE(segments[1].p_offset, sizeof(struct object) - DATA_BYTES + 1, ERR_INVALID),
    CHANGE(segments[1].p_offset, UINT64_MAX, ERR_INVALID),
    CHANGE(segments[1].p_offset, AT(names), ERR_OK),
    CHANGE(segments[3].p_vaddr, UINT64_MAX, ERR_OK), // it has no memory
    CHANGE(sections[1].sh_type, SHT_REL, ERR_OK),
    CHANGE(sections[1].sh_offset, sizeof(struct object) - sizeof(Elf64_Rela), ERR_INVALID),
    CHANGE(sections[1].sh_size, UINT64_MAX, ERR_INVALID),
    CHANGE(sections[2].sh_flags, SHF_ALLOC, ERR_INVALID),
    CHANGE(relocations[0].r_info, AGENT_IMAGE_RELATIVE + 1, ERR_INVALID),
    CHANGE(relocations[1].r_info, 0, ERR_INVALID),
    CHANGE(relocations[1].r_offset, 6 * PAGE - 8, ERR_OK),
    CHANGE(relocations[1].r_offset, 6 * PAGE - 7, ERR_INVALID),
    CHANGE(relocations[1].r_offset, UINT64_MAX, ERR_INVALID),
#undef CHANGE
};

static void one_field_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        struct object object = make_object();
        struct err_info info = {0};
        memcpy((uint8_t *)&object + changes[i].at, &changes[i].value, changes[i].bytes);
        // Exactly as large as the file, so that a read behind it is seen.
        const size_t len = sizeof(object);
        uint8_t *copy = malloc(len);
        assert_non_null(copy);
        memcpy(copy, &object, len);
        CLEANUP(agent_image_release) struct agent_image image = {0};
        print_message("%s: %llx\n", changes[i].what, (unsigned long long)changes[i].value);
        assert_int_equal(agent_image_init(&image, (struct bytes){copy, len}, PAGE, &info),
                         changes[i].expected);
        assert_int_equal(info.text[0] != '\0', changes[i].expected != ERR_OK);
        if (changes[i].expected == ERR_OK) {
            agent_image_relocate(&image, 0x10000);
        } else {
            assert_null(image.memory);
        }
        free(copy);
    }
}

static void a_file_may_end_anywhere(void **state)
{
    (void)state;
    const struct object object = make_object();
    for (size_t len = 0; len < sizeof(object); len += 3) {
        uint8_t *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, &object, len);
        CLEANUP(agent_image_release) struct agent_image image = {0};
        assert_int_equal(agent_image_init(&image, (struct bytes){copy, len}, PAGE, NULL),
                         ERR_INVALID);
        (void)agent_image_symbol((struct bytes){copy, len}, "one");
        free(copy);
    }
}

static void segments_have_a_bound(void **state)
{
    (void)state;
    for (size_t count = AGENT_SEGMENTS_MAX; count <= AGENT_SEGMENTS_MAX + 1; count++) {
        struct object object = make_object();
        object.head.e_phnum = (Elf64_Half)count;
        for (size_t i = 0; i < count; i++) {
            object.segments[i] =
                (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 2 * i * PAGE, .p_memsz = PAGE};
        }
        object.segments[2].p_memsz = 2 * PAGE; // up to the next one's page
        CLEANUP(agent_image_release) struct agent_image image = {0};
        assert_int_equal(agent_image_init(&image, bytes_of(&object), PAGE, NULL),
                         count == AGENT_SEGMENTS_MAX ? ERR_OK : ERR_INVALID);
        assert_int_equal(image.segment_count, count == AGENT_SEGMENTS_MAX ? count : 0);
    }
}

// A segment takes whole pages. Two that share no small page may share a large one.
static void segments_are_laid_out_for_pages_of_each_size(void **state)
{
    (void)state;
    static const struct {
        uint64_t page_bytes;
        uint64_t second; // address of the second segment
        enum err err;
        uint64_t start; // of its pages
        uint64_t span;
    } cases[] = {
        {4 << 10, 0x1f010, ERR_OK, 0x1f000, 0x21000},
        {16 << 10, 0x1f010, ERR_OK, 0x1c000, 0x24000},
        {64 << 10, 0x1f010, ERR_OK, 0x10000, 0x30000},
        {16 << 10, 3 * PAGE + 16, ERR_INVALID, 0, 0}, // on the first segment's page
        {64 << 10, 3 * PAGE + 16, ERR_INVALID, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct object object = make_object();
        object.head.e_phnum = 2;
        object.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_memsz = PAGE, .p_flags = PF_X};
        object.segments[1] = (Elf64_Phdr){
            .p_type = PT_LOAD, .p_vaddr = cases[i].second, .p_memsz = PAGE + 16, .p_flags = PF_W};
        object.relocations[0].r_offset = cases[i].second + 8;
        object.relocations[1].r_offset = cases[i].second + 16;
        CLEANUP(agent_image_release) struct agent_image image = {0};
        assert_int_equal(agent_image_init(&image, bytes_of(&object), cases[i].page_bytes, NULL),
                         cases[i].err);
        assert_int_equal(image.segment_count, cases[i].err == ERR_OK ? 2 : 0);
        assert_int_equal(image.segments[1].start, cases[i].start);
        assert_int_equal(image.segments[1].end, cases[i].span);
        assert_int_equal(image.span, cases[i].span);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_laid_out_and_moved),
        cmocka_unit_test(symbols_are_found_by_their_whole_name),
        cmocka_unit_test(one_field_decides),
        cmocka_unit_test(a_file_may_end_anywhere),
        cmocka_unit_test(segments_have_a_bound),
        cmocka_unit_test(segments_are_laid_out_for_pages_of_each_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
