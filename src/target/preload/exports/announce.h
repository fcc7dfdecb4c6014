// SPDX-License-Identifier: MIT
// announce: tells those modules that contain include/cairn.h where its table is.
//
// Each has a note in its image (owner "cairn", type 1) that says where its pointer to the table
// lies. Modules that are loaded when we are hear of it from here, before their constructors run, or
// in the middle of the program's life when we come late; those that are loaded afterwards look for
// the table themselves. Context: T; under the loader's lock, not in a hook.
#pragma once

struct cairn_api;

void announce_api(const struct cairn_api *api);
