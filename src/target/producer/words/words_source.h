// SPDX-License-Identifier: MIT
// words_source: how a process gets at the file of the words, part by part.
//
//   all of it is mapped already           the recorder did it, for the agent
//   the file is opened for each part      no descriptor stays open in the target
//   what maps its head is mapped again    the file is out of reach for a forked child that has new
//                                         namespaces, and what it inherited is all it has
//
// A part has no access until words_source_open_part: mlockall() populates none. Context: T, any
// thread; raw system calls only. Failure: nothing stays mapped or open.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct words_source {
    uint64_t base; // where in the file the words begin
    // Return a descriptor of the file, which the caller closes; -errno if not.
    long (*open)(const void *context);
    const void *context;
    // Where the address of the words is, if all of them are mapped without access, as the recorder
    // does it for the agent: then nothing needs to be opened. 0 there: no more. NULL: they are not.
    uint64_t *mapped;
    void *head;   // borrowed: a mapping of the file's first page, which stays; NULL: not to be used
    bool is_lean; // addresses are scarce: no room is reserved, and all blocks have entries
};

// Return the words, if all of them are mapped; else NULL.
static inline char *words_source_mapped(const struct words_source *source)
{
    return source->mapped != NULL ? (char *)*source->mapped : NULL;
}

// Map a part of the words without access. NULL if the kernel refuses.
void *words_source_map(const struct words_source *source, uint64_t offset, size_t len_bytes);

// Unmap what words_source_map has returned.
void words_source_unmap(const struct words_source *source, void *part, size_t len_bytes);

// Make a part, or some of it, accessible. false: the kernel refuses.
bool words_source_open_part(void *part, size_t len_bytes);
