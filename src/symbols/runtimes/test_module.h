// SPDX-License-Identifier: MIT
// test_module: an ELF file with one dynamic function and one section, each with a name of the
// test's choice.
//
//   0x000 header   0x100 symbols   0x140 their names   0x200 names of sections   0x300 sections
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
    TEST_MODULE_SYMBOLS = 0x100,
    TEST_MODULE_NAMES = 0x140,
    TEST_MODULE_SECTION_NAMES = 0x200,
    TEST_MODULE_SECTIONS = 0x300,
    TEST_MODULE_IMAGE_BYTES = 0x500,
};

// Return false if a system call fails.
static inline bool
test_module_write(int fd, const char *function, uint16_t defined_in, const char *section)
{
    uint8_t image[TEST_MODULE_IMAGE_BYTES] = {0};
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_shoff = TEST_MODULE_SECTIONS,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 5,
        .e_shstrndx = 3,
    };
    const Elf64_Sym symbol = {.st_name = 1,
                              .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                              .st_shndx = defined_in,
                              .st_value = 0x1000};
    const Elf64_Shdr sections[] = {
        {0},
        {.sh_type = SHT_DYNSYM,
         .sh_offset = TEST_MODULE_SYMBOLS,
         .sh_size = 2 * sizeof(Elf64_Sym),
         .sh_link = 2,
         .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_type = SHT_STRTAB,
         .sh_offset = TEST_MODULE_NAMES,
         .sh_size = TEST_MODULE_SECTION_NAMES - TEST_MODULE_NAMES},
        {.sh_type = SHT_STRTAB,
         .sh_offset = TEST_MODULE_SECTION_NAMES,
         .sh_size = TEST_MODULE_SECTIONS - TEST_MODULE_SECTION_NAMES},
        {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = TEST_MODULE_SYMBOLS, .sh_size = 1},
    };
    memcpy(image, &header, sizeof(header));
    memcpy(image + TEST_MODULE_SYMBOLS + sizeof(symbol), &symbol, sizeof(symbol));
    memcpy(image + TEST_MODULE_NAMES + 1, function, strlen(function) + 1);
    memcpy(image + TEST_MODULE_SECTION_NAMES + 1, section, strlen(section) + 1);
    memcpy(image + TEST_MODULE_SECTIONS, sections, sizeof(sections));
    return write(fd, image, sizeof(image)) == (ssize_t)sizeof(image);
}
