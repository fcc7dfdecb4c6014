// SPDX-License-Identifier: MIT
#include "symbols/dwarf/dwarf_scopes.h"

#include <dwarf.h>
#include <stdbool.h>

// An instance refers to an abstract form, and that to a declaration. More steps are a loop.
enum {
    MAX_ORIGINS = 8,
    MAX_SCOPE_BYTES = 16384,
    MAX_NAME_BYTES = 4096
};

Dwarf_Die dwarf_declaration(Dwarf_Die *die)
{
    Dwarf_Die at = *die;
    for (int step = 0; step < MAX_ORIGINS; step++) {
        Dwarf_Attribute attribute;
        Dwarf_Attribute *found = dwarf_attr(&at, DW_AT_abstract_origin, &attribute);
        if (found == NULL) {
            found = dwarf_attr(&at, DW_AT_specification, &attribute);
        }
        Dwarf_Die origin;
        if (dwarf_formref_die(found, &origin) == NULL) {
            break;
        }
        at = origin;
    }
    return at;
}

static bool has_scopes(Dwarf_Die *unit_die)
{
    switch (dwarf_srclang(unit_die)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_Rust:
    case DW_LANG_D:
        return true;
    default:
        return false;
    }
}

static void append_scope(Dwarf_Die *scope, struct strbuf *out)
{
    const char *name = dwarf_diename(scope);
    switch (dwarf_tag(scope)) {
    case DW_TAG_namespace:
        name = name != NULL ? name : "(anonymous namespace)";
        break;
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subprogram:
        break;
    default:
        return;
    }
    if (name != NULL && out->len < MAX_SCOPE_BYTES) {
        strbuf_printf(out, "%.*s::", MAX_NAME_BYTES, name);
    }
}

// Move `die` to its last sibling that begins at or before `target`.
static void skip_siblings(Dwarf_Die *die, Dwarf_Off target)
{
    Dwarf_Die next;
    while (dwarf_siblingof(die, &next) == 0 && dwarf_dieoffset(&next) > dwarf_dieoffset(die) &&
           dwarf_dieoffset(&next) <= target) {
        *die = next;
    }
}

void dwarf_append_scopes(Dwarf_Die *declaration, struct strbuf *out)
{
    size_t before = out->len;
    Dwarf_Off target = dwarf_dieoffset(declaration);
    Dwarf_Die unit_die;
    Dwarf_Die die;
    if (dwarf_diecu(declaration, &unit_die, NULL, NULL) == NULL || !has_scopes(&unit_die) ||
        dwarf_child(&unit_die, &die) != 0) {
        return;
    }
    for (;;) {
        skip_siblings(&die, target);
        Dwarf_Off offset = dwarf_dieoffset(&die);
        Dwarf_Die child;
        if (offset == target) {
            return;
        }
        if (offset > target || dwarf_child(&die, &child) != 0 ||
            dwarf_dieoffset(&child) <= offset) {
            strbuf_truncate(out, before);
            return;
        }
        append_scope(&die, out);
        die = child;
    }
}
