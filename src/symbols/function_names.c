// SPDX-License-Identifier: MIT
#include "symbols/function_names.h"

#include <dwarf.h>

#include "base/compiler.h"
#include "symbols/dwarf/dwarf_scopes.h"
#include "symbols/names/symbol_name.h"
#include "symbols/symbol_source.h"

struct walk {
    function_names_visit *visit;
    void *context;
    struct strbuf name;
    bool is_over;
};

static void walk_release(struct walk *walk)
{
    strbuf_release(&walk->name);
}

static void source_release(struct symbol_source *source)
{
    symbol_source_close(source);
}

static MUST_USE enum err visit_mangled(struct walk *walk, const char *mangled)
{
    TRY(symbol_name_demangle(mangled, &walk->name));
    walk->is_over = !walk->visit(walk->context, strbuf_text(&walk->name));
    return ERR_OK;
}

static MUST_USE enum err visit_symbols(struct walk *walk, const struct symtab *symtab)
{
    for (size_t i = 0; i < symtab->names.len && !walk->is_over; i++) {
        TRY(visit_mangled(walk, symtab->names.items[i]));
    }
    return ERR_OK;
}

static const char *text_of(Dwarf_Die *die, unsigned attribute_name)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(die, attribute_name, &attribute));
}

// Visit a function. If it refers to its declaration, the name is there, and the walk visits that,
// too.
static MUST_USE enum err visit_function(struct walk *walk, Dwarf_Die *die)
{
    const char *linkage_name = text_of(die, DW_AT_linkage_name);
    if (linkage_name != NULL) {
        return visit_mangled(walk, linkage_name);
    }
    const char *name = text_of(die, DW_AT_name);
    if (name == NULL) {
        return ERR_OK;
    }
    strbuf_clear(&walk->name);
    dwarf_append_scopes(die, &walk->name);
    strbuf_append_text(&walk->name, name);
    TRY(strbuf_result(&walk->name));
    walk->is_over = !walk->visit(walk->context, strbuf_text(&walk->name));
    return ERR_OK;
}

static MUST_USE enum err visit_unit(struct walk *walk, Dwarf_Die *tree)
{
    struct dwarf_walk dies;
    for (Dwarf_Die *die = dwarf_walk_begin(&dies, tree, false); die != NULL && !walk->is_over;
         die = dwarf_walk_next(&dies)) {
        if (dwarf_tag(die) == DW_TAG_subprogram) {
            TRY(visit_function(walk, die));
        }
    }
    return ERR_OK;
}

enum err function_names_walk(const struct name_sources *sources,
                             const char *path,
                             struct bytes build_id,
                             function_names_visit *visit,
                             void *context,
                             enum symbol_gap *gap)
{
    CLEANUP(source_release)
    struct symbol_source source = {.module = {.fd = -1}, .debug = {.fd = -1}};
    CLEANUP(walk_release) struct walk walk = {.visit = visit, .context = context};
    TRY(symbol_source_open(&source, sources, path, build_id, false));
    *gap = source.gap;
    TRY(visit_symbols(&walk, &source.symtab));
    if (!source.has_dwarf) {
        return ERR_OK;
    }
    const struct dwarf_unit_vec *units = &source.dwarf.units.units;
    for (size_t i = 0; i < units->len && !walk.is_over; i++) {
        TRY(visit_unit(&walk, &units->items[i].tree));
    }
    return ERR_OK;
}
