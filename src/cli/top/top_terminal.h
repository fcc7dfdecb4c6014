// SPDX-License-Identifier: MIT
// top_terminal: shows pictures of `cairn top` on a terminal and reads its keys, with ncurses.
//
// ncurses sends only what differs from the picture before, so an update costs little over ssh. This
// is the only file that uses it. Its state is global, so a process has one terminal.
// Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/top/top_picture.h"

// Check the terminal at stdin and stdout. ERR_UNSUPPORTED with a sentence if they are no terminal,
// or if TERM names one that cannot move its cursor or that is not known.
enum err top_terminal_check(struct err_info *info) MUST_USE;

// Take over the terminal, which must have been checked.
enum err top_terminal_open(struct err_info *info) MUST_USE;

// Give the terminal back as it was.
void top_terminal_close(void);

// Read the size again, after SIGWINCH.
void top_terminal_resize(void);
struct top_size top_terminal_size(void);

void top_terminal_show(const struct top_picture *picture);

// Read the next key that was typed; false if there is none.
bool top_terminal_key(uint32_t *out_key);
