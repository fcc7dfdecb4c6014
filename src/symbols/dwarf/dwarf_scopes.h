// SPDX-License-Identifier: MIT
// dwarf_scopes: the namespaces and classes around a function that has no linkage name.
//
// Compilers give no linkage name to lambdas, to members of local classes and to functions that are
// instantiated with them. Their plain names ("operator()") say little. A DIE does not know its
// parent, so this module searches the path from the unit to the declaration: on each level the last
// DIE that begins at or before the declaration holds it. DIE offsets must grow on the path, which
// ends every search. Context: H.
#pragma once

#include <elfutils/libdw.h>

#include "host/text/strbuf.h"

// Return the DIE that declares `die`'s function, which may be `die` itself.
Dwarf_Die dwarf_declaration(Dwarf_Die *die);

// Append the scopes of `declaration` as "outer::inner::". Append nothing for languages without
// scopes, or if the path is not found.
void dwarf_append_scopes(Dwarf_Die *declaration, struct strbuf *out);
