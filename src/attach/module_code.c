// SPDX-License-Identifier: MIT
#include "attach/module_code.h"

#include <gelf.h>
#include <string.h>

#include "base/minmax.h"
#include "inject/code/changed_registers.h"
#include "symbols/elf/function_starts.h"

enum {
    SEGMENTS_MAX = 4, // with code
};

struct segment {
    uint64_t addr;
    const uint8_t *bytes; // borrowed from the file
    uint64_t len;
};

struct module_code {
    struct segment segments[SEGMENTS_MAX];
    size_t segment_count;
    struct function_starts starts;
    const struct allocator_scan *scan;
};

static void open_code(const struct elf_file *module, struct module_code *code)
{
    size_t count = 0;
    GElf_Phdr header;
    *code = (struct module_code){0};
    function_starts_init(module->elf, &code->starts);
    (void)elf_getphdrnum(module->elf, &count); // 0 of a damaged file
    for (size_t i = 0; i < count && code->segment_count < SEGMENTS_MAX; i++) {
        if (gelf_getphdr(module->elf, (int)i, &header) == NULL || header.p_type != PT_LOAD ||
            (header.p_flags & PF_X) == 0) {
            continue;
        }
        const Elf_Data *data = elf_getdata_rawchunk(module->elf, (int64_t)header.p_offset,
                                                    header.p_filesz, ELF_T_BYTE);
        if (data != NULL && data->d_buf != NULL) {
            code->segments[code->segment_count++] =
                (struct segment){.addr = header.p_vaddr, .bytes = data->d_buf, .len = data->d_size};
        }
    }
}

static size_t read_code(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    const struct module_code *code = context;
    for (size_t i = 0; i < code->segment_count; i++) {
        const struct segment *segment = code->segments + i;
        if (addr >= segment->addr && addr - segment->addr < segment->len) {
            const uint64_t at = addr - segment->addr;
            const size_t got = min_u64(len, segment->len - at);
            memcpy(out, segment->bytes + at, got);
            return got;
        }
    }
    return 0;
}

// Static executables have no table of unwind tables. The sizes of symbols are known there.
static uint64_t function_of(void *context, uint64_t addr)
{
    struct module_code *code = context;
    uint64_t start = function_starts_find(&code->starts, addr);
    for (size_t i = 0; start == 0 && i < code->scan->entries.len; i++) {
        const struct allocator_entry *entry = code->scan->entries.items + i;
        start = addr - entry->addr < entry->size_bytes ? entry->addr : 0;
    }
    return start;
}

// Whether the agent may have a hook for it that is a function of C. Others cost no walk.
static bool is_frequent(enum agent_hook hook)
{
    switch ((enum agent_effect)agent_hook_shape(hook).effect) {
    case AGENT_ALLOCATES:
    case AGENT_ALLOCATES_OR_THROWS:
    case AGENT_ALLOCATES_AT:
    case AGENT_RESIZES:
    case AGENT_FREES:
        return true;
    case AGENT_COPIES_TEXT:
    case AGENT_RESIZES_OR_FREES:
    case AGENT_RESIZES_IN_PLACE:
    case AGENT_CHANGES_MODULES:
    case AGENT_EXECUTES:
    case AGENT_CONFINES:
    case AGENT_MAPS:
    case AGENT_EXITS:
    case AGENT_LIMITS:
        return false;
    }
    return false;
}

void module_code_note(const struct elf_file *module, struct allocator_scan *scan)
{
    struct module_code code;
    if (scan->entries.len == 0) {
        return;
    }
    open_code(module, &code);
    code.scan = scan;
    const struct changed_source source = {.code = {.read = read_code, .context = &code},
                                          .function_of = function_of};
    for (size_t i = 0; i < scan->entries.len; i++) {
        struct allocator_entry *entry = scan->entries.items + i;
        entry->changes_all = !entry->is_users && is_frequent(entry->hook) &&
                             changed_registers_are_all(entry->addr, &source);
    }
}
