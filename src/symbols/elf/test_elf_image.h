// SPDX-License-Identifier: MIT
// test_elf_image: the smallest ELF file that holds one function and one text, for tests.
//
//   0x000 header, segment   0x100 code   0x180 text   0x280 symbols   0x2c0 their names
//   0x300 section headers   0x400 end; all of it is mapped at TEST_ELF_ADDR
#pragma once

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/elf/elf_file.h"

#define TEST_ELF_ADDR UINT64_C(0x10000)

enum {
    TEST_ELF_CODE = 0x100,
    TEST_ELF_TEXT = 0x180,
    TEST_ELF_SYMBOLS = 0x280,
    TEST_ELF_NAMES = 0x2c0,
    TEST_ELF_SECTIONS = 0x300,
    TEST_ELF_BYTES = 0x400,
    TEST_ELF_CODE_MAX = TEST_ELF_TEXT - TEST_ELF_CODE,
    TEST_ELF_TEXT_MAX = TEST_ELF_SYMBOLS - TEST_ELF_TEXT,
};

// Return the open file; code and text are truncated if too long. False if a system call fails.
static inline bool test_elf_open(
    uint16_t machine, struct bytes code, struct bytes text, const char *name, struct elf_file *out)
{
    uint8_t image[TEST_ELF_BYTES] = {0};
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(Elf64_Ehdr),
        .e_shoff = TEST_ELF_SECTIONS,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 3,
    };
    const Elf64_Phdr segment = {.p_type = PT_LOAD,
                                .p_vaddr = TEST_ELF_ADDR,
                                .p_filesz = TEST_ELF_BYTES,
                                .p_memsz = TEST_ELF_BYTES};
    const Elf64_Sym symbol = {.st_name = 1,
                              .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                              .st_shndx = 1,
                              .st_value = TEST_ELF_ADDR + TEST_ELF_CODE};
    const Elf64_Shdr sections[] = {
        {0},
        {.sh_type = SHT_SYMTAB,
         .sh_offset = TEST_ELF_SYMBOLS,
         .sh_size = 2 * sizeof(Elf64_Sym),
         .sh_link = 2,
         .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_type = SHT_STRTAB, .sh_offset = TEST_ELF_NAMES, .sh_size = 0x40},
    };
    memcpy(image, &header, sizeof(header));
    memcpy(image + sizeof(header), &segment, sizeof(segment));
    memcpy(image + TEST_ELF_SYMBOLS + sizeof(symbol), &symbol, sizeof(symbol));
    memcpy(image + TEST_ELF_SECTIONS, sections, sizeof(sections));
    (void)snprintf((char *)image + TEST_ELF_NAMES + 1, 0x3f, "%s", name); // truncated
    memcpy(image + TEST_ELF_CODE, code.data,
           code.len < TEST_ELF_CODE_MAX ? code.len : TEST_ELF_CODE_MAX);
    memcpy(image + TEST_ELF_TEXT, text.data,
           text.len < TEST_ELF_TEXT_MAX ? text.len : TEST_ELF_TEXT_MAX);
    int fd = memfd_create("image", MFD_CLOEXEC);
    if (fd < 0 || write(fd, image, sizeof(image)) != (ssize_t)sizeof(image)) {
        return false;
    }
    return elf_file_open_fd(out, fd, "image", NULL) == ERR_OK;
}
