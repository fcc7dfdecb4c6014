// SPDX-License-Identifier: MIT
// symbol_table: see symbol_table.h.
#include "symbols/elf/symbol_table.h"

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
    table->count = count <= INT32_MAX ? count : INT32_MAX;
    table->next = 1; // symbol 0 is undefined
    return true;
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
        found.name = elf_strptr(table->elf, table->names_index, found.symbol.st_name);
        if (found.name != NULL && *found.name != '\0') {
            *out = found;
            return true;
        }
    }
    return false;
}
