// SPDX-License-Identifier: MIT
#include "target/preload/real/dynamic_section.h"

#include <string.h>
#include <sys/auxv.h>

#define VERSION_HIDDEN     0x8000u // in DT_VERSYM: not the default version
#define VERSION_FIRST      2u      // 0 is local, 1 is without a version
#define BLOOM_WORD_BITS    64u
#define IFUNC_HAS_ARGUMENT ((uint64_t)1 << 62) // AArch64 ABI, "GNU C Library IFUNC interface"

// The loader has relocated the pointers of most dynamic sections, except the vdso's and read-only
// ones.
static uint64_t address_of(const ElfW(Dyn) * entry, uint64_t bias)
{
    const uint64_t value = entry->d_un.d_ptr;
    return value < bias ? value + bias : value;
}

bool dynamic_section_read(uint64_t bias, const ElfW(Dyn) * entries, struct dynamic_section *out)
{
    struct dynamic_section found = {.bias = bias};
    const ElfW(Dyn) *own_name = NULL;
    for (const ElfW(Dyn) *entry = entries; entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)address_of(entry, bias); // NOLINT(performance-no-int-to-ptr)
        switch (entry->d_tag) {
        case DT_SYMTAB:
            found.symbols = at;
            break;
        case DT_STRTAB:
            found.names = at;
            break;
        case DT_SONAME:
            own_name = entry;
            break;
        case DT_GNU_HASH:
            found.gnu_hash = at;
            break;
        case DT_HASH:
            found.hash = at;
            break;
        case DT_VERSYM:
            found.versions = at;
            break;
        case DT_RELA:
            found.relocations[0].first = at;
            break;
        case DT_RELASZ:
            found.relocations[0].bytes = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            found.relocations[1].first = at;
            break;
        case DT_PLTRELSZ:
            found.relocations[1].bytes = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    if (found.symbols == NULL || found.names == NULL) {
        return false;
    }
    found.own_name = own_name != NULL ? found.names + own_name->d_un.d_val : NULL;
    *out = found;
    return true;
}

// Like the loader's dlsym(), this skips local and hidden symbols and older versions.
static bool
defines(const struct dynamic_section *module, uint32_t index, const char *name, uint32_t types)
{
    const ElfW(Sym) *symbol = &module->symbols[index];
    const uint32_t type = ELF64_ST_TYPE(symbol->st_info);
    const uint32_t binding = ELF64_ST_BIND(symbol->st_info);
    const uint32_t version = module->versions != NULL ? module->versions[index] : 1;
    const bool is_default =
        (version & VERSION_HIDDEN) == 0 || (version & ~VERSION_HIDDEN) < VERSION_FIRST;
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && binding != STB_LOCAL &&
           (types >> type & 1) != 0 && is_default &&
           strcmp(module->names + symbol->st_name, name) == 0;
}

// Return the symbol's index, or 0, which is never a symbol's.
static uint32_t
find_by_gnu_hash(const struct dynamic_section *module, const char *name, uint32_t types)
{
    uint32_t hash = 5381;
    for (const char *c = name; *c != '\0'; c++) {
        hash = hash * 33 + (uint8_t)*c;
    }
    const uint32_t *head = module->gnu_hash; // buckets, first symbol, filter's words, its shift
    const uint64_t *filter = (const uint64_t *)(const void *)(head + 4);
    const uint32_t *buckets = (const uint32_t *)(const void *)(filter + head[2]);
    const uint32_t *chain = buckets + head[0];
    const uint64_t word = filter[hash / BLOOM_WORD_BITS % head[2]];
    if ((word >> hash % BLOOM_WORD_BITS & word >> (hash >> head[3]) % BLOOM_WORD_BITS & 1) == 0) {
        return 0;
    }
    uint32_t index = buckets[hash % head[0]];
    if (index < head[1]) {
        return 0;
    }
    for (;; index++) {
        const uint32_t link = chain[index - head[1]];
        if ((link | 1) == (hash | 1) && defines(module, index, name, types)) {
            return index;
        }
        if ((link & 1) != 0) {
            return 0; // the last of its bucket
        }
    }
}

static uint32_t find_by_hash(const struct dynamic_section *module, const char *name, uint32_t types)
{
    uint32_t hash = 0;
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash << 4) + (uint8_t)*c;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    const uint32_t *buckets = module->hash + 2; // after the counts of buckets and of symbols
    const uint32_t *chain = buckets + module->hash[0];
    uint32_t index = buckets[hash % module->hash[0]];
    while (index != 0 && !defines(module, index, name, types)) {
        index = chain[index];
    }
    return index;
}

// Return the choice of a function that is chosen at run-time (IFUNC): the loader has called the
// resolver before, or would do so now.
static uint64_t choose(uint64_t resolver)
{
    const uint64_t argument[3] = {sizeof(argument), getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
    uint64_t (*ask)(uint64_t hardware, const uint64_t *more); // x86-64's have no parameters
    memcpy(&ask, &resolver, sizeof(ask));
    return ask(argument[1] | IFUNC_HAS_ARGUMENT, argument);
}

// Return the symbol `name` of one of the types (1 << STT_...), or NULL.
static const ElfW(Sym) *
    find(const struct dynamic_section *module, const char *name, uint32_t types)
{
    uint32_t index = 0;
    if (module->gnu_hash != NULL && module->gnu_hash[0] != 0 && module->gnu_hash[2] != 0) {
        index = find_by_gnu_hash(module, name, types);
    } else if (module->hash != NULL && module->hash[0] != 0) {
        index = find_by_hash(module, name, types);
    }
    return index != 0 ? &module->symbols[index] : NULL;
}

static uint64_t symbol_address(const struct dynamic_section *module, const ElfW(Sym) * symbol)
{
    return (symbol->st_shndx == SHN_ABS ? 0 : module->bias) + symbol->st_value;
}

uint64_t dynamic_section_function(const struct dynamic_section *module, const char *name)
{
    const ElfW(Sym) *symbol =
        find(module, name, 1u << STT_FUNC | 1u << STT_NOTYPE | 1u << STT_GNU_IFUNC);
    if (symbol == NULL) {
        return 0;
    }
    const uint64_t address = symbol_address(module, symbol);
    return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? choose(address) : address;
}

uint64_t dynamic_section_variable(const struct dynamic_section *module, const char *name)
{
    const ElfW(Sym) *symbol = find(module, name, 1u << STT_OBJECT);
    return symbol != NULL ? symbol_address(module, symbol) : 0;
}
