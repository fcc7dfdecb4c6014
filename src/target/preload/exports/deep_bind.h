// SPDX-License-Identifier: MIT
// deep_bind: plugins that look symbols up in themselves first (RTLD_DEEPBIND) are recorded too.
//
// Such a plugin finds libc's malloc before ours. Dropping the flag would change what the program
// does, so the plugin is loaded as asked, and then those of its pointers to functions that we hook
// which hold the very function that we wrap are set to our hooks. Pointers to any other allocator
// stay.
//
// Every dlopen passes through our hook, which calls the real one as a tail call: the loader must
// see the program's own return address, since it decides by it where to look (RUNPATH) and in which
// namespace. After a tail call nothing can be mended. So a plugin is opened by an ordinary call
// only if that makes no difference: its name is a path, or its caller has no search path of its
// own.
//
// What is missed: what a plugin's constructors allocate while dlopen runs, plugins that a library
// with a RUNPATH opens by their bare name, and dlmopen's namespaces.
// Context: T, inside the program's call of dlopen, which takes the loader's lock; when it has
// returned, the new modules are looked at under that lock (dl_iterate_phdr), so that no other
// thread unloads them meanwhile. errno is kept. Nothing of ours is held.
#pragma once

#include <stdbool.h>

// True if opening `file` by a call from here is the same as by one from `caller`, an address.
bool deep_bind_may_call(const char *file, const void *caller);

// Opens `file`, and lets what was loaded with it find our hooks. As dlopen(3).
void *deep_bind_open(const char *file, int mode);
