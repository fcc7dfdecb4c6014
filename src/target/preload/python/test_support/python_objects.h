// SPDX-License-Identifier: MIT
// python_objects: makes code objects in the form of a version of CPython, in the memory of a test.
//
// Invariant: a code object has its name, its file and its lines in itself, and must stay in place.
// Context: tests.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "target/preload/python/python_layout.h"

enum {
    PYTHON_OBJECT_BYTES = 256,
    PYTHON_STATE_ASCII = 1 << 6 | 1 << 5 | 1 << 2,
    PYTHON_STATE_WIDE = 1 << 5,
    PYTHON_KIND_SHIFT = 2,
    PYTHON_YIELD_FROM = 72, // of 3.10
};

struct python_object {
    _Alignas(16) uint8_t bytes[PYTHON_OBJECT_BYTES];
};

struct python_code_object {
    struct python_object code;
    struct python_object name;
    struct python_object file;
    struct python_object lines;
    struct python_object bytecode; // 3.10
};

static inline void python_put(void *object, size_t offset, uint64_t value, size_t bytes)
{
    memcpy((uint8_t *)object + offset, &value, bytes);
}

static inline void python_put_text(const struct python_layout *l,
                                   struct python_object *object,
                                   const char *text,
                                   uint64_t hash)
{
    python_put(object, l->text.length, strlen(text), 8);
    python_put(object, l->text.hash, hash, 8);
    python_put(object, l->text.state, PYTHON_STATE_ASCII, 4);
    for (size_t i = 0; text[i] != '\0'; i++) {
        object->bytes[l->text.ascii_data + i] = (uint8_t)text[i];
    }
}

// Make a function whose code units 0 and 1 are in its first line, and 2 in the next one.
static inline void python_make_code(const struct python_layout *l,
                                    struct python_code_object *o,
                                    const char *name,
                                    uint64_t hash,
                                    const char *file,
                                    uint32_t first_line)
{
    static const uint8_t entries[] = {0x80 | 10 << 3 | 1, 0, 0, 0x80 | 11 << 3 | 0, 0, 0};
    static const uint8_t pairs[] = {4, 0, 2, 1, 0, 0}; // the last one is of no code
    const uint8_t *lines = l->code.bytecode != 0 ? pairs : entries;
    *o = (struct python_code_object){0};
    python_put_text(l, &o->name, name, hash);
    python_put_text(l, &o->file, file, UINT64_MAX);
    python_put(&o->lines, l->bytes.size, sizeof(entries), 8);
    memcpy(o->lines.bytes + l->bytes.data, lines, sizeof(entries));
    if (l->code.bytecode != 0) {
        python_put(&o->code, l->code.bytecode, (uint64_t)&o->bytecode, 8);
        python_put(&o->bytecode, l->bytes.data + 2 * sizeof(uint16_t), PYTHON_YIELD_FROM, 1);
    }
    python_put(&o->code, l->code.name, (uint64_t)&o->name, 8);
    python_put(&o->code, l->code.file, (uint64_t)&o->file, 8);
    python_put(&o->code, l->code.lines, (uint64_t)&o->lines, 8);
    python_put(&o->code, l->code.first_line, first_line, 4);
}

// Let a frame of this code have begun the code unit `unit`; -1: none.
static inline void python_put_instruction(const struct python_layout *l,
                                          void *frame,
                                          const struct python_code_object *o,
                                          int64_t unit)
{
    const uint64_t begin = (uint64_t)&o->code + l->code.instructions;
    const bool is_number = l->code.bytecode != 0;
    python_put(frame, l->frame.instruction, is_number ? (uint64_t)unit : begin + 2 * (uint64_t)unit,
               is_number ? 4 : 8);
}
