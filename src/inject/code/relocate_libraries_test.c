// SPDX-License-Identifier: MIT
// relocate_libraries_test: every function that libc, libstdc++ and the loader export is moved, and
// each moved instruction must mean what the original one meant.
//
// The oracle is Zydis's formatter, which prints the absolute address of every branch target and of
// every operand at %rip: the texts of both instructions must be equal. Functions that are refused
// are counted by reason. Context: H, one thread. x86-64.
#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "inject/code/relocate.h"

enum {
    TEXT_BYTES = 256,
    REFUSALS = RELOCATE_OUT_OF_REACH + 1,
};

#define LOAD_BIAS        0x7f1200000000u
#define NEAR_BLOCK_BYTES 0x10000u // below the module, where the trampoline is

struct tally {
    uint32_t functions;
    uint32_t refusals[REFUSALS];
};

struct oracle {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
};

// Print the instruction at `code`; returns its length.
static uint8_t
print(const struct oracle *oracle, const uint8_t *code, size_t len, uint64_t addr, char *text)
{
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    assert_true(
        ZYAN_SUCCESS(ZydisDecoderDecodeFull(&oracle->decoder, code, len, &decoded, operands)));
    assert_true(ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&oracle->formatter, &decoded, operands,
                                                             decoded.operand_count_visible, text,
                                                             TEXT_BYTES, addr, NULL)));
    return decoded.length;
}

// Compare the moved instructions with the original ones, and the jump back with its target.
static void compare(const struct oracle *oracle,
                    const char *name,
                    struct bytes code,
                    uint64_t entry,
                    const struct relocated *moved,
                    uint64_t trampoline)
{
    char before[TEXT_BYTES];
    char after[TEXT_BYTES];
    uint32_t from = 0;
    uint32_t to = 0;
    uint8_t move = 0;
    while (from < moved->old_len) {
        if (from != 0) {
            assert_true(move < moved->move_count);
            assert_int_equal(moved->moves[move].from, from);
            assert_int_equal(moved->moves[move].to, to);
            move++;
        }
        from += print(oracle, code.data + from, code.len - from, entry + from, before);
        to += print(oracle, moved->code + to, moved->code_len - to, trampoline + to, after);
        const char *plain = strncmp(before, "bnd ", 4) == 0 ? before + 4 : before;
        if (strcmp(plain, after) != 0) {
            fail_msg("%s: '%s' became '%s'", name, before, after);
        }
    }
    assert_int_equal(from, moved->old_len);
    assert_int_equal(move, moved->move_count);
    if (to == moved->code_len) {
        assert_true(strncmp(before, "jmp", 3) == 0 || strstr(before, "ret") != NULL ||
                    strncmp(before, "ud2", 3) == 0);
        return;
    }
    assert_true(from >= PATCH_BYTES);
    to += print(oracle, moved->code + to, moved->code_len - to, trampoline + to, after);
    char back[TEXT_BYTES];
    (void)snprintf(back, sizeof(back), "jmp 0x%016lX", entry + from);
    assert_string_equal(after, back);
    assert_int_equal(to, moved->code_len);
}

static void try_function(const struct oracle *oracle,
                         const char *name,
                         struct bytes code,
                         uint64_t size_bytes,
                         uint64_t vaddr,
                         struct tally *tally)
{
    const uint64_t entry = LOAD_BIAS + vaddr;
    const uint64_t trampoline = LOAD_BIAS - NEAR_BLOCK_BYTES + STUB_BYTES;
    struct relocated moved;
    const enum relocate_refusal refusal =
        relocate_prologue(code, size_bytes, entry, trampoline, &moved);
    tally->functions++;
    tally->refusals[refusal]++;
    if (refusal == RELOCATE_OK) {
        compare(oracle, name, code, entry, &moved, trampoline);
    }
}

// Call try_function for each function of .dynsym.
static void try_file(const struct oracle *oracle, struct bytes file, struct tally *tally)
{
    const Elf64_Ehdr *header = (const void *)file.data;
    const Elf64_Phdr *segments = (const void *)(file.data + header->e_phoff);
    const Elf64_Shdr *sections = (const void *)(file.data + header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM) {
            continue;
        }
        const Elf64_Sym *symbols = (const void *)(file.data + sections[i].sh_offset);
        const char *names = (const char *)file.data + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++) {
            const Elf64_Sym *symbol = symbols + k;
            if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) {
                continue;
            }
            for (size_t p = 0; p < header->e_phnum; p++) {
                const uint64_t at = symbol->st_value - segments[p].p_vaddr;
                if (segments[p].p_type == PT_LOAD && at < segments[p].p_filesz) {
                    const struct bytes code = {file.data + segments[p].p_offset + at,
                                               segments[p].p_filesz - at};
                    try_function(oracle, names + symbol->st_name, code, symbol->st_size,
                                 symbol->st_value, tally);
                }
            }
        }
    }
}

static void moved_instructions_mean_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *library;
        double refused_max; // of the functions that are long enough for a jump
    } libraries[] = {{LIBC_SO, 0.01}, {"libstdc++.so.6", 0.01}, {LD_SO, 0.05}, {LIBM_SO, 0.01}};
    struct oracle oracle;
    (void)ZydisDecoderInit(&oracle.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    (void)ZydisFormatterInit(&oracle.formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
        void *library = dlopen(libraries[i].library, RTLD_LAZY);
        assert_non_null(library);
        const struct link_map *map = NULL;
        assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, (void *)&map), 0);
        int file CLEANUP(fd_closep) = -1;
        struct err_info info;
        assert_int_equal(file_open_read(map->l_name, &file, &info), ERR_OK);
        struct stat status;
        assert_int_equal(fstat(file, &status), 0);
        const size_t len = (size_t)status.st_size;
        void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, file, 0);
        assert_ptr_not_equal(bytes, MAP_FAILED);
        struct tally tally = {0};
        try_file(&oracle, (struct bytes){bytes, len}, &tally);
        print_message("%s: %u functions", libraries[i].library, tally.functions);
        for (size_t k = 1; k < REFUSALS; k++) {
            if (tally.refusals[k] != 0) {
                print_message(", %u %s", tally.refusals[k], relocate_refusal_text(k));
            }
        }
        print_message("\n");
        const uint32_t moved = tally.refusals[RELOCATE_OK];
        const uint32_t long_enough = tally.functions - tally.refusals[RELOCATE_TOO_SHORT];
        assert_true(tally.functions > 20);
        assert_true(long_enough - moved <= libraries[i].refused_max * long_enough);
        (void)munmap(bytes, len);
        (void)dlclose(library);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_instructions_mean_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
