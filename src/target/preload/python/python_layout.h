// SPDX-License-Identifier: MIT
// python_layout: where CPython keeps what a stack needs, by version.
//
// An offset is in bytes from the beginning of its structure, in 64-bit processes, as CPython's
// headers declare it (Include/internal). A new version is one more row of the table. A version
// whose structures differ in more than offsets needs code in python_chain.c.
//
// Context: T; constant data.
#pragma once

#include <stdint.h>

struct python_layout {
    uint32_t version; // major and minor, as in Py_Version >> 16
    struct {
        uint16_t finalizing;     // the thread state that finalizes; 0: none
        uint16_t has_thread_key; // int
        uint16_t thread_key;     // pthread_key_t of a thread's own state
    } runtime;                   // _PyRuntimeState
    struct {
        uint16_t frame;  // the innermost one, or the cframe if that leads to it
        uint16_t cframe; // 3.10
    } thread;            // PyThreadState
    struct {
        uint16_t frame; // from 3.11 on
        uint16_t previous;
        uint16_t bytes; // 0: there are none
    } cframe;           // _PyCFrame, a variable of _PyEval_EvalFrameDefault
    struct {
        uint16_t code;
        uint16_t previous;
        uint16_t instruction; // the last one that has begun, or a cache entry behind it
        uint16_t depth;       // 3.10: int, -1 while it is run (python_chain.h)
        uint16_t is_entry;    // bool: _PyEval_EvalFrameDefault was called for it; if `owner` is 0
        uint16_t owner;
        uint16_t c_stack; // the owner of a variable of _PyEval_EvalFrameDefault
        uint16_t bytes;
    } frame; // _PyInterpreterFrame; 3.10: PyFrameObject
    struct {
        uint16_t first_line; // int
        uint16_t file;
        uint16_t name;         // the qualified one; 3.10 has none
        uint16_t lines;        // a bytes object; python_lines.h describes it
        uint16_t bytecode;     // 3.10: a bytes object, and an instruction is a number; else 0
        uint16_t instructions; // behind all the others
    } code;                    // PyCodeObject
    struct {
        uint16_t size;
        uint16_t data;
    } bytes; // PyBytesObject
    struct {
        uint16_t length; // in characters
        uint16_t hash;
        uint16_t state; // bit field
        uint16_t ascii_data;
        uint16_t other_data;
    } text; // PyASCIIObject, PyCompactUnicodeObject
};

// Return the layout of `version`, as above; NULL if there is none.
const struct python_layout *python_layout_of(uint32_t version);
