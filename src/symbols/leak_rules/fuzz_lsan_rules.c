// SPDX-License-Identifier: MIT
// fuzz_lsan_rules: any bytes as the code of __lsan_default_suppressions, and as the text after it.
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "symbols/elf/test_elf_image.h"
#include "symbols/leak_rules/lsan_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0) {
        return 0;
    }
    CLEANUP(strbuf_release) struct strbuf rules = {0};
    CLEANUP(elf_file_close) struct elf_file file = {0};
    uint16_t machine = (data[0] & 1) != 0 ? EM_AARCH64 : EM_X86_64;
    size_t code_len = len - 1 < TEST_ELF_CODE_MAX ? len - 1 : TEST_ELF_CODE_MAX;
    struct bytes code = {.data = data + 1, .len = code_len};
    struct bytes text = {.data = data + 1 + code_len, .len = len - 1 - code_len};
    if (!test_elf_open(machine, code, text, "__lsan_default_suppressions", &file)) {
        return 0;
    }
    if (lsan_rules_read(&file, &rules) == ERR_OK && rules.len > TEST_ELF_BYTES + 1) {
        abort(); // more than the file holds
    }
    return 0;
}
