// SPDX-License-Identifier: MIT
// name_regex_ops: the instructions that name_regex_compile.c writes and name_regex.c runs.
// Context: H.
#pragma once

enum op_kind {
    OP_CHAR,   // detail: this byte
    OP_ANY,    // any byte
    OP_SET,    // left: index of the set
    OP_SPLIT,  // go on at both left and right
    OP_JUMP,   // go on at left
    OP_ASSERT, // detail: enum op_assertion
    OP_MATCH,
};

enum op_assertion {
    ASSERT_BEGIN,
    ASSERT_END,
    ASSERT_WORD_EDGE,
    ASSERT_NO_WORD_EDGE,
    ASSERT_WORD_BEGIN,
    ASSERT_WORD_END,
};
