// SPDX-License-Identifier: MIT
#include "symbols/elf/symtab.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "symbols/elf/symbol_table.h"

// Limit for comparing names. All symbols may share one very long name, which sorting must not read
// again and again.
enum {
    MAX_COMPARED_BYTES = 4096
};

struct symbol {
    uint64_t begin;
    uint64_t size;
    uint64_t section_end;
    const char *name;
    uint32_t rank; // lower is better
};

DEFINE_VEC(symbol_vec, struct symbol);

static uint32_t rank_of(const GElf_Sym *symbol)
{
    switch (GELF_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return 0;
    case STB_WEAK:
        return 1;
    default:
        return 2;
    }
}

static unsigned underscores(const char *name)
{
    unsigned count = 0;
    while (name[count] == '_' && count < MAX_COMPARED_BYTES) {
        count++;
    }
    return count;
}

static int compare_symbols(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    return order_u64(a->begin, b->begin)
               ?: order_u64(a->rank, b->rank)
               ?: order_u64(underscores(a->name), underscores(b->name))
               ?: order_u64(strnlen(a->name, MAX_COMPARED_BYTES),
                            strnlen(b->name, MAX_COMPARED_BYTES))
               ?: strncmp(a->name, b->name, MAX_COMPARED_BYTES);
}

// Sort by one byte of the addresses; symbols with the same byte keep their order.
static void sort_by_byte(const struct symbol_vec *from, struct symbol *to, unsigned shift)
{
    size_t places[UINT8_MAX + 1] = {0};
    size_t next = 0;
    for (size_t i = 0; i < from->len; i++) {
        places[(from->items[i].begin >> shift) & UINT8_MAX]++;
    }
    for (size_t i = 0; i <= UINT8_MAX; i++) {
        const size_t count = places[i];
        places[i] = next;
        next += count;
    }
    for (size_t i = 0; i < from->len; i++) {
        to[places[(from->items[i].begin >> shift) & UINT8_MAX]++] = from->items[i];
    }
}

// Sort as compare_symbols says. Tables have up to a million symbols, and few share an address: they
// are sorted by the bytes of the addresses first, which takes a fifth of the time of qsort.
static enum err sort_symbols(struct symbol_vec *symbols)
{
    CLEANUP(symbol_vec_release) struct symbol_vec other = {0};
    uint64_t used_bits = 0;
    for (size_t i = 0; i < symbols->len; i++) {
        used_bits |= symbols->items[i].begin ^ symbols->items[0].begin;
    }
    TRY(symbol_vec_reserve(&other, symbols->len));
    other.len = symbols->len;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (((used_bits >> shift) & UINT8_MAX) != 0) {
            sort_by_byte(symbols, other.items, shift);
            const struct symbol_vec sorted = other;
            other = *symbols;
            *symbols = sorted;
        }
    }
    for (size_t first = 0, next = 0; first < symbols->len; first = next) {
        while (next < symbols->len && symbols->items[next].begin == symbols->items[first].begin) {
            next++;
        }
        if (next - first > 1) {
            qsort(symbols->items + first, next - first, sizeof(*symbols->items), compare_symbols);
        }
    }
    return ERR_OK;
}

// Return the end of the symbol's section, so that a symbol without a size does not extend into the
// next section.
static uint64_t section_end(Elf *elf, const GElf_Sym *symbol)
{
    GElf_Shdr header;
    if (symbol->st_size != 0) {
        return symbol->st_value; // not needed
    }
    Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
    if (symbol->st_shndx >= SHN_LORESERVE || section == NULL ||
        gelf_getshdr(section, &header) == NULL || symbol->st_value < header.sh_addr ||
        symbol->st_value - header.sh_addr >= header.sh_size) {
        return symbol->st_value;
    }
    return header.sh_addr + header.sh_size;
}

static enum err read_symbols(Elf *elf, struct symbol_vec *out, uint64_t *section_bytes)
{
    struct symbol_table table;
    if (!symbol_table_open(&table, elf, SHT_SYMTAB) &&
        !symbol_table_open(&table, elf, SHT_DYNSYM)) {
        return ERR_OK;
    }
    *section_bytes = table.data->d_size + table.names.len;
    struct function_symbol function;
    while (symbol_table_next(&table, &function)) {
        const GElf_Sym *symbol = &function.symbol;
        TRY(symbol_vec_push(out, (struct symbol){.begin = symbol->st_value,
                                                 .size = symbol->st_size,
                                                 .section_end = section_end(elf, symbol),
                                                 .name = function.name,
                                                 .rank = rank_of(symbol)}));
    }
    return ERR_OK;
}

// Return the end of `symbol`. `next_begin` is the next address at which a symbol begins.
static uint64_t end_of(const struct symbol *symbol, uint64_t next_begin)
{
    if (symbol->size != 0) {
        uint64_t end;
        return __builtin_add_overflow(symbol->begin, symbol->size, &end) ? UINT64_MAX : end;
    }
    return min_u64(next_begin, symbol->section_end);
}

// Add the ranges in the order of the index: of symbols with one address the last one first.
static enum err add_ranges(struct symtab *symtab, const struct symbol_vec *symbols)
{
    TRY(range_vec_reserve(&symtab->ranges.ranges, symbols->len));
    for (size_t first = 0, next = 0; first < symbols->len; first = next) {
        const uint64_t begin = symbols->items[first].begin;
        while (next < symbols->len && symbols->items[next].begin == begin) {
            next++;
        }
        const uint64_t next_begin = next < symbols->len ? symbols->items[next].begin : UINT64_MAX;
        for (size_t i = next; i-- > first;) {
            TRY(range_index_add(&symtab->ranges, begin, end_of(&symbols->items[i], next_begin),
                                (uint32_t)i));
        }
    }
    return range_index_seal(&symtab->ranges);
}

enum err symtab_init(struct symtab *symtab, Elf *elf)
{
    CLEANUP(symbol_vec_release) struct symbol_vec symbols = {0};
    CLEANUP(symtab_release) struct symtab fresh = {0};
    TRY(read_symbols(elf, &symbols, &fresh.bytes));
    TRY(sort_symbols(&symbols));
    TRY(name_vec_reserve(&fresh.names, symbols.len));
    for (size_t i = 0; i < symbols.len; i++) {
        TRY(name_vec_push(&fresh.names, symbols.items[i].name));
    }
    TRY(add_ranges(&fresh, &symbols));
    fresh.bytes += symbols.len * (sizeof(struct range) + sizeof(uint64_t) + sizeof(const char *));
    *symtab = TAKE(fresh);
    return ERR_OK;
}

void symtab_release(struct symtab *symtab)
{
    range_index_release(&symtab->ranges);
    name_vec_release(&symtab->names);
    *symtab = (struct symtab){0};
}

const char *symtab_find(const struct symtab *symtab, uint64_t address)
{
    struct range_search search = range_index_search(&symtab->ranges, address);
    const struct range *range = range_index_next(&symtab->ranges, &search, address);
    return range != NULL ? symtab->names.items[range->value] : NULL;
}
