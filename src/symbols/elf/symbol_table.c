// SPDX-License-Identifier: MIT
#include "symbols/elf/symbol_table.h"

#include <string.h>

static Elf_Scn *section_of_type(Elf *elf, uint32_t type, GElf_Shdr *header)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(elf, section)) != NULL) {
        if (gelf_getshdr(section, header) != NULL && header->sh_type == type) {
            return section;
        }
    }
    return NULL;
}

// Return the section of the names as a whole. libelf checks anew for each name whether its section
// has an end, which takes most of the time of reading a table.
static struct bytes names_of(Elf *elf, size_t names_index)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_getscn(elf, names_index);
    const bool is_plain = section != NULL && gelf_getshdr(section, &header) != NULL &&
                          header.sh_type == SHT_STRTAB && (header.sh_flags & SHF_COMPRESSED) == 0;
    const Elf_Data *data = is_plain ? elf_getdata(section, NULL) : NULL;
    const bool is_ended = data != NULL && data->d_buf != NULL && data->d_size > 0 &&
                          ((const char *)data->d_buf)[data->d_size - 1] == '\0';
    return is_ended ? (struct bytes){.data = data->d_buf, .len = data->d_size} : (struct bytes){0};
}

bool symbol_table_open(struct symbol_table *table, Elf *elf, uint32_t type)
{
    *table = (struct symbol_table){.elf = elf};
    GElf_Shdr header;
    Elf_Scn *section = section_of_type(elf, type, &header);
    Elf_Data *data = section != NULL ? elf_getdata(section, NULL) : NULL;
    if (data == NULL || header.sh_entsize == 0) {
        return false;
    }
    const size_t count = data->d_size / header.sh_entsize;
    table->data = data;
    table->names_index = header.sh_link;
    table->names = names_of(elf, header.sh_link);
    table->count = count <= INT32_MAX ? count : INT32_MAX;
    table->next = 1; // symbol 0 is undefined
    return true;
}

const char *symbol_table_name(const struct symbol_table *table, const GElf_Sym *symbol)
{
    return symbol->st_name < table->names.len
               ? (const char *)table->names.data + symbol->st_name
               : elf_strptr(table->elf, table->names_index, symbol->st_name);
}

bool symbol_table_may_name(Elf *elf, uint32_t type, const char *name)
{
    GElf_Shdr header;
    if (section_of_type(elf, type, &header) == NULL) {
        return false;
    }
    const struct bytes names = names_of(elf, header.sh_link);
    return names.len == 0 || memmem(names.data, names.len, name, strlen(name) + 1) != NULL;
}

static bool is_function(const GElf_Sym *symbol)
{
    const unsigned type = GELF_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF;
}

bool symbol_table_next(struct symbol_table *table, struct function_symbol *out)
{
    while (table->next < table->count) {
        struct function_symbol found = {0};
        if (gelf_getsym(table->data, (int)table->next++, &found.symbol) == NULL ||
            !is_function(&found.symbol)) {
            continue;
        }
        found.name = symbol_table_name(table, &found.symbol);
        if (found.name != NULL && *found.name != '\0') {
            *out = found;
            return true;
        }
    }
    return false;
}

static bool find_in(Elf *elf, uint32_t type, const char *name, GElf_Sym *out)
{
    struct symbol_table table;
    if (!symbol_table_may_name(elf, type, name) || !symbol_table_open(&table, elf, type)) {
        return false;
    }
    while (table.next < table.count) {
        GElf_Sym symbol;
        const char *found = gelf_getsym(table.data, (int)table.next++, &symbol) != NULL &&
                                    symbol.st_shndx != SHN_UNDEF
                                ? symbol_table_name(&table, &symbol)
                                : NULL;
        if (found != NULL && strcmp(found, name) == 0) {
            *out = symbol;
            return true;
        }
    }
    return false;
}

bool symbol_table_find(Elf *elf, const char *name, GElf_Sym *out)
{
    return find_in(elf, SHT_DYNSYM, name, out) || find_in(elf, SHT_SYMTAB, name, out);
}
