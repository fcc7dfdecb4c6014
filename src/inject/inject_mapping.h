// SPDX-License-Identifier: MIT
// inject_mapping: the memory of the agent in the target: map it, fill it, find it again.
//
// Parts of inject.h. Addresses are chosen here; if the target has mapped something there meanwhile
// (EEXIST), mappings are read again and another address is chosen. Context: H; one thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/agent_image.h"
#include "inject/inject.h"

// Map and write the image, or find an equal one. If there is room, a new one is in reach of the
// module with the most functions to patch. Sets image_addr.
enum err inject_mapping_image(struct inject *inject,
                              struct agent_image *image,
                              const struct inject_near *nears,
                              size_t count,
                              struct err_info *info) MUST_USE;

// Map the near blocks, or find those of an earlier attach. Needs image_addr.
enum err inject_mapping_nears(struct inject *inject,
                              struct inject_near *nears,
                              size_t count,
                              struct err_info *info) MUST_USE;

// Return the block at an address; NULL if the note has none.
struct inject_note_near *inject_mapping_near_at(struct inject_note *note, uint64_t addr);

// Write to memory that the target itself may not write. Stops one thread if the kernel wants it.
enum err inject_mapping_write(struct inject *inject,
                              uint64_t addr,
                              const uint8_t *from,
                              size_t len,
                              struct err_info *info) MUST_USE;
