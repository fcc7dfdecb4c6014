// SPDX-License-Identifier: MIT
// deep_bind: records plugins that look symbols up in themselves first (RTLD_DEEPBIND).
//
// Such a plugin finds libc's malloc before ours. Without the flag the program would behave
// differently, so the plugin is loaded with it. Then those of its function pointers that contain
// exactly a function that we wrap are set to our hooks. Pointers to any other allocator stay.
//
// Every dlopen passes through our hook, which calls the real one as a tail call, because the loader
// uses the program's own return address to choose where to search (RUNPATH) and in which namespace.
// After a tail call the hook cannot patch anything. So a plugin is opened by an ordinary call only
// if that makes no difference: its name is a path, or its caller has no search path of its own.
//
// Not recorded: allocations of a plugin's constructors while dlopen runs, and plugins that a
// library with a RUNPATH opens by their bare name. Context: T, inside the program's call of dlopen,
// which takes the loader's lock. When it has returned, the new modules are examined under that lock
// (dl_iterate_phdr), so that no other thread unloads them meanwhile. errno is kept. None of our
// guards is held.
#pragma once

#include <stdbool.h>

// Whether opening `file` by a call from here has the same effect as by a call from `caller`, an
// address.
bool deep_bind_may_call(const char *file, const void *caller);

// Open `file` as dlopen(3) does, and bind what was loaded with it to our hooks.
void *deep_bind_open(const char *file, int mode);
