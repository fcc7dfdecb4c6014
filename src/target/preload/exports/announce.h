// SPDX-License-Identifier: MIT
// announce: gives the modules that contain include/cairn.h the address of its table.
//
// Each such module has a note in its image (owner "cairn", type 1) that locates its pointer to the
// table. Modules that are loaded together with the library get the pointer from here, before their
// constructors run; if the library is loaded later, in the middle of the program's life. Modules
// that are loaded afterwards look the table up themselves. Context: T; under the loader's lock, not
// in a hook.
#pragma once

struct cairn_api;

void announce_api(const struct cairn_api *api);
