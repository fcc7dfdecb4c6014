// SPDX-License-Identifier: MIT
// lsan_rules: see lsan_rules.h.
//
// Code on x86-64, with optional instructions around it; P is the address after the instruction:
//   f3 0f 1e fa        endbr64
//   55 48 89 e5        push rbp; mov rbp, rsp
//   48 8d 05 d32       lea rax, [rip + d32]     -> P + d32
//   b8 i32             mov eax, i32             -> i32, in an executable that is not relocated
//   48 c7 c0 i32       mov rax, i32             -> i32
//   5d  c9             pop rbp; leave
//   c3                 ret
// AArch64: bti c; adrp x0, page; add x0, x0, offset; ret.
#include "symbols/leak_rules/lsan_rules.h"

#include <gelf.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "symbols/elf/symbol_table.h"

static const char function_name[] = "__lsan_default_suppressions";

enum {
    CODE_BYTES = 64, // length of the read part of the function
};

// Read the bytes of the file that are mapped at `addr`, up to the end of their segment, at most
// LSAN_RULES_MAX_BYTES + 1. Not with elf_rawfile: after it reads a whole file, libelf does not free
// the parts that it read before.
static bool find_bytes(const struct elf_file *file, uint64_t addr, struct bytes *out)
{
    size_t count;
    if (elf_getphdrnum(file->elf, &count) != 0) {
        return false;
    }
    for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(file->elf, (int)i, &segment) == NULL || segment.p_type != PT_LOAD ||
            addr < segment.p_vaddr || addr - segment.p_vaddr >= segment.p_filesz) {
            continue;
        }
        const uint64_t inside = addr - segment.p_vaddr;
        if (segment.p_offset > file->size_bytes || inside >= file->size_bytes - segment.p_offset) {
            return false;
        }
        const uint64_t in_file = file->size_bytes - segment.p_offset - inside;
        const uint64_t mapped = segment.p_filesz - inside;
        const uint64_t rest = in_file < mapped ? in_file : mapped;
        const Elf_Data *data = elf_getdata_rawchunk(
            file->elf, (int64_t)(segment.p_offset + inside),
            rest < LSAN_RULES_MAX_BYTES + 1 ? rest : LSAN_RULES_MAX_BYTES + 1, ELF_T_BYTE);
        if (data == NULL || data->d_buf == NULL) {
            return false;
        }
        *out = (struct bytes){.data = data->d_buf, .len = data->d_size};
        return true;
    }
    return false;
}

static bool find_function(const struct elf_file *file, uint64_t *out)
{
    static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct symbol_table table;
        struct function_symbol function;
        bool is_next = symbol_table_may_name(file->elf, types[i], function_name) &&
                       symbol_table_open(&table, file->elf, types[i]);
        while (is_next && (is_next = symbol_table_next(&table, &function))) {
            if (strcmp(function.name, function_name) == 0) {
                *out = function.symbol.st_value;
                return true;
            }
        }
    }
    return false;
}

// The effect of an x86-64 instruction on the answer.
struct form {
    uint8_t bytes[4];
    uint8_t len;
    enum {
        FORM_PASS,     // none
        FORM_RELATIVE, // the answer is the operand, relative to the end of the instruction
        FORM_ABSOLUTE, // the answer is the operand
        FORM_RETURN,
    } meaning;
};

static const struct form forms[] = {
    {{0xf3, 0x0f, 0x1e, 0xfa}, 4, FORM_PASS},
    {{0x55}, 1, FORM_PASS},
    {{0x48, 0x89, 0xe5}, 3, FORM_PASS},
    {{0x48, 0x8d, 0x05}, 3, FORM_RELATIVE},
    {{0xb8}, 1, FORM_ABSOLUTE},
    {{0x48, 0xc7, 0xc0}, 3, FORM_ABSOLUTE},
    {{0x5d}, 1, FORM_PASS},
    {{0xc9}, 1, FORM_PASS},
    {{0xc3}, 1, FORM_RETURN},
};

static const struct form *form_at(struct bytes code, size_t at)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (forms[i].len <= code.len - at &&
            memcmp(code.data + at, forms[i].bytes, forms[i].len) == 0) {
            return &forms[i];
        }
    }
    return NULL;
}

// Follow the function from its first instruction to its return.
static bool answer_of_x86(struct bytes code, uint64_t addr, uint64_t *out)
{
    bool has_answer = false;
    size_t at = 0;
    while (at < code.len) {
        const struct form *form = form_at(code, at);
        if (form == NULL) {
            return false;
        }
        at += form->len;
        if (form->meaning == FORM_RETURN) {
            return has_answer;
        }
        if (form->meaning == FORM_PASS) {
            continue;
        }
        if (code.len - at < 4) {
            return false;
        }
        int64_t operand = (int32_t)get_u32(code.data + at);
        at += 4;
        *out = (uint64_t)operand + (form->meaning == FORM_RELATIVE ? addr + at : 0);
        has_answer = true;
    }
    return false;
}

static bool answer_of_aarch64(struct bytes code, uint64_t addr, uint64_t *out)
{
    const uint32_t bti_c = 0xd503245f;
    const uint32_t ret = 0xd65f03c0;
    size_t at = code.len >= 4 && get_u32(code.data) == bti_c ? 4 : 0;
    if (code.len < at + 12) {
        return false;
    }
    uint32_t adrp = get_u32(code.data + at);
    uint32_t add = get_u32(code.data + at + 4);
    bool is_known = (adrp & 0x9f00001f) == 0x90000000 && (add & 0xffc003ff) == 0x91000000 &&
                    get_u32(code.data + at + 8) == ret;
    if (!is_known) {
        return false;
    }
    uint64_t pages = (adrp >> 3 & 0x1ffffc) | (adrp >> 29 & 3); // 21 bits, signed
    uint64_t distance = (pages ^ 0x100000) - 0x100000;
    *out = ((addr + at) & ~UINT64_C(0xfff)) + (distance << 12) + (add >> 10 & 0xfff);
    return true;
}

enum err lsan_rules_read(const struct elf_file *file, struct strbuf *out)
{
    GElf_Ehdr header;
    uint64_t addr;
    struct bytes code;
    if (gelf_getehdr(file->elf, &header) == NULL || !find_function(file, &addr) ||
        !find_bytes(file, addr, &code)) {
        return ERR_OK;
    }
    code.len = min_u64(code.len, CODE_BYTES);
    uint64_t text_addr;
    bool is_known = header.e_machine == EM_X86_64    ? answer_of_x86(code, addr, &text_addr)
                    : header.e_machine == EM_AARCH64 ? answer_of_aarch64(code, addr, &text_addr)
                                                     : false;
    struct bytes text;
    if (!is_known || !find_bytes(file, text_addr, &text)) {
        return ERR_OK;
    }
    size_t len = strnlen((const char *)text.data, text.len);
    if (len < text.len && len > 0 && len <= LSAN_RULES_MAX_BYTES) {
        strbuf_append(out, text.data, len);
        strbuf_append_char(out, '\n');
    }
    return strbuf_result(out);
}
