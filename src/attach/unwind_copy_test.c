// SPDX-License-Identifier: MIT
// Tests of unwind_copy: the index that it makes for this program is the linker's, and damaged
// tables do no harm.
#include "attach/unwind_copy.h"

#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "host/os/file.h"

enum {
    HEADER_BYTES = 12,
    PAIR_BYTES = 8,
    ROUNDS = 300,
    DISTANCE = 1 << 24,
};

// Return the linker's table and its address.
static struct bytes linkers_table(Elf *elf, uint64_t *out_addr)
{
    size_t count = 0;
    assert_int_equal(elf_getphdrnum(elf, &count), 0);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        assert_non_null(gelf_getphdr(elf, (int)i, &header));
        if (header.p_type == PT_GNU_EH_FRAME) {
            const Elf_Data *data =
                elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
            *out_addr = header.p_vaddr;
            return (struct bytes){data->d_buf, data->d_size};
        }
    }
    fail_msg("this program has no .eh_frame_hdr");
    return (struct bytes){0};
}

static uint64_t function_at(const uint8_t *table, uint64_t table_addr, size_t index)
{
    const int32_t relative = (int32_t)get_u32(table + HEADER_BYTES + index * PAIR_BYTES);
    return table_addr + (uint64_t)(int64_t)relative;
}

static void the_index_is_the_linkers(void **state)
{
    (void)state;
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    CLEANUP(unwind_copy_release) struct unwind_copy copy = {0};
    CLEANUP(strbuf_release) struct strbuf made = {0};
    struct err_info info = {0};
    uint64_t linkers_addr = 0;
    assert_int_equal(elf_file_open(&file, "/proc/self/exe", &info), ERR_OK);
    const struct bytes linkers = linkers_table(file.elf, &linkers_addr);
    assert_int_equal(unwind_copy_read(&file, &copy), ERR_OK);
    const uint64_t addr = copy.section_addr + DISTANCE;
    assert_int_equal(unwind_copy_make(&copy, 0, addr, &made), ERR_OK);
    assert_int_equal(made.len, unwind_copy_bytes(&copy));
    const uint8_t *ours = (const uint8_t *)made.data;
    const size_t count = get_u32(linkers.data + 8);
    assert_true(count > 10);
    assert_int_equal(get_u32(ours + 8), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(function_at(ours, addr, i), function_at(linkers.data, linkers_addr, i));
    }
}

static void damage_is_no_harm(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf program = {0};
    struct err_info info = {0};
    assert_int_equal(file_read("/proc/self/exe", SIZE_MAX, &program, &info), ERR_OK);
    CLEANUP(elf_file_close) struct elf_file whole = {.fd = -1};
    CLEANUP(unwind_copy_release) struct unwind_copy tables = {0};
    assert_int_equal(elf_file_open(&whole, "/proc/self/exe", &info), ERR_OK);
    assert_int_equal(unwind_copy_read(&whole, &tables), ERR_OK);
    const uint8_t *at = memmem(program.data, program.len, tables.section.data, tables.section.len);
    assert_non_null(at);
    srand(14);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const int fd = memfd_create("damaged", MFD_CLOEXEC);
        assert_int_equal(write(fd, program.data, program.len), program.len);
        for (unsigned i = 0; i <= round % 8; i++) {
            const uint8_t byte = (uint8_t)(rand() % 4 == 0 ? 0xff : rand());
            const off_t place =
                (at - (const uint8_t *)program.data) + (off_t)((size_t)rand() % tables.section.len);
            assert_int_equal(pwrite(fd, &byte, 1, place), 1);
        }
        CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
        CLEANUP(unwind_copy_release) struct unwind_copy copy = {0};
        CLEANUP(strbuf_release) struct strbuf made = {0};
        assert_int_equal(elf_file_open_fd(&file, fd, "damaged", &info), ERR_OK);
        assert_int_equal(unwind_copy_read(&file, &copy), ERR_OK);
        assert_int_equal(unwind_copy_make(&copy, 0, copy.section_addr + DISTANCE, &made), ERR_OK);
        assert_int_equal(made.len, unwind_copy_bytes(&copy));
        assert_true(copy.function_count == 0 ||
                    get_u32((const uint8_t *)made.data + 8) <= copy.function_count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_is_the_linkers),
        cmocka_unit_test(damage_is_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
