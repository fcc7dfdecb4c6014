// SPDX-License-Identifier: MIT
// dwarf_scopes: the namespaces and classes around a function that has no linkage name.
//
// Compilers give no linkage name to lambdas, to members of local classes and to what is
// instantiated with them; their plain names ("operator()") say little. DIEs do not know their
// parents, so the way down from the unit to the declaration is searched: on each level the last DIE
// that begins at or before the declaration holds it. DIE offsets must grow on the way, which ends
// every walk. Context: H.
#pragma once

#include <elfutils/libdw.h>

#include "host/text/strbuf.h"

// The DIE that declares what `die` is an instance of, possibly `die` itself.
Dwarf_Die dwarf_declaration(Dwarf_Die *die);

// Appends the scopes of `declaration` as "outer::inner::"; nothing for languages without them, and
// nothing if the way is not found.
void dwarf_append_scopes(Dwarf_Die *declaration, struct strbuf *out);
