// SPDX-License-Identifier: MIT
// name_regex: POSIX extended regular expressions in time proportional to the text.
//
// glibc's regcomp takes exponential time and memory on some short expressions, such as
// (((.{0,9}){0,9}){0,9})*y, and expressions reach us from a browser. Here an expression becomes a
// small program that is run in all its states at once, one step over the text for each character:
//
//   a(b|c)*d      0 CHAR a   1 SPLIT +1 +6   2 SPLIT +1 +3   3 CHAR b   4 JUMP +2   5 CHAR c
//                 6 JUMP -5  7 CHAR d        8 MATCH
//
// It knows all of POSIX ERE in the C locale and glibc's \w \W \s \S \b \B \< \> \` \', and answers
// as glibc does; a test compares them. Back-references are refused.
// Invariant: offsets are relative, so that a repeated part can be copied; a program has at most
// NAME_REGEX_MAX_OPS instructions, which bounds both time and memory. Work is also counted, so that
// a question over very many names can be ended. Context: H; an expression is used by one thread at
// a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"

enum {
    NAME_REGEX_MAX_OPS = 4096,
    NAME_REGEX_MAX_DEPTH = 64, // of nested groups
};

struct name_regex_op {
    uint8_t kind;   // enum op_kind in name_regex_compile.c
    uint8_t detail; // a character, or an assertion
    int16_t left;   // relative, of jumps and splits; index of a set
    int16_t right;
};

struct name_regex_set {
    uint64_t bits[4]; // by byte
};

DEFINE_VEC(name_regex_op_vec, struct name_regex_op);
DEFINE_VEC(name_regex_set_vec, struct name_regex_set);
DEFINE_VEC(op_index_vec, uint16_t);

struct name_regex {
    struct name_regex_op_vec ops;   // owned
    struct name_regex_set_vec sets; // owned
    struct op_index_vec current;    // owned; states before a character
    struct op_index_vec next;       // owned; states after it
    struct op_index_vec pending;    // owned; instructions to follow without a character
    struct u32_vec seen;            // owned; by instruction: the round in which it was entered
    uint32_t round;
};

// `name` says in errors which expression is wrong. ERR_INVALID for one that makes no sense,
// ERR_LIMIT for one that is too large, ERR_UNSUPPORTED for back-references, ERR_NO_MEMORY.
enum err name_regex_compile(struct name_regex *out,
                            const char *text,
                            const char *name,
                            struct err_info *info) MUST_USE;

void name_regex_release(struct name_regex *regex); // accepts a zeroed one

// Whether some part of `text` matches. Adds the instructions that it ran to *work.
bool name_regex_matches(struct name_regex *regex, const char *text, uint64_t *work);
