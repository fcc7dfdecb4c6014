// SPDX-License-Identifier: MIT
#include "target/preload/python/python_code.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/page_alloc.h"
#include "target/preload/python/python_lines.h"
#include "target/preload/python/python_memory.h"

enum {
    PROBES_MAX = 64,
    LINES_KNOWN = 4096,
    LINE_BITS = 24,
    UNIT_BITS = 24,
    FILE_BYTES_MAX = 1024,
    FUNCTION_BYTES_MAX = 512,
    TEXT_BYTES_MAX = FILE_BYTES_MAX + FUNCTION_BYTES_MAX + 16,
    TEXTS_BYTES = 8 << 20,
    LINES_SIZE_MAX = 1 << 20, // of a table of lines
    UNIT_BYTES = 2,
    // Of the state of a text: its data follows it, has one byte a character, bytes a character.
    TEXT_IS_COMPACT = 1 << 5,
    TEXT_IS_ASCII = 1 << 6,
    TEXT_KIND_SHIFT = 2,
    TEXT_KIND_MASK = 7,
};

#define PREFIX "[python] "

// Number 0 is the code that finds no room. Texts begin with its text.
struct code_table {
    _Atomic uint64_t keys[PYTHON_CODES_MAX];  // 0: free
    _Atomic uint32_t texts[PYTHON_CODES_MAX]; // offset of the text; 0: not written yet
    // Lines that were looked up: number, unit, line, from the high bits on.
    _Atomic uint64_t lines[LINES_KNOWN];
    _Atomic uint32_t texts_used;
    char text[TEXTS_BYTES];
};

static const char full_text[] = PREFIX "(further functions):/";

static _Atomic(struct code_table *) g_table;

static struct code_table *table_now(void)
{
    // Acquire: pairs with python_code_prepare.
    return atomic_load_explicit(&g_table, memory_order_acquire);
}

bool python_code_prepare(void)
{
    if (table_now() != NULL) {
        return true;
    }
    struct code_table *table = page_alloc(sizeof(*table));
    if (table == NULL) {
        return false;
    }
    __builtin_memcpy(table->text, full_text, sizeof(full_text));
    atomic_store_explicit(&table->texts_used, sizeof(full_text), memory_order_relaxed);
    struct code_table *none = NULL;
    // Release: its first text is written.
    if (!atomic_compare_exchange_strong_explicit(&g_table, &none, table, memory_order_release,
                                                 memory_order_acquire)) {
        page_free(table, sizeof(*table));
    }
    return true;
}

// Read the first and the last 8 bytes of the table of lines: all of it if it is shorter.
static void read_ends(const struct python_layout *l, struct python_code_facts *f)
{
    const uint64_t some = f->lines_bytes < sizeof(uint64_t) ? f->lines_bytes : sizeof(uint64_t);
    const uint64_t data = f->lines + l->bytes.data;
    f->line_ends[0] = f->line_ends[1] = 0;
    __builtin_memcpy(&f->line_ends[0], (const void *)data, some);
    __builtin_memcpy(&f->line_ends[1], (const void *)(data + f->lines_bytes - some), some);
}

static uint64_t key_of(const struct python_code_facts *f)
{
    const uint64_t parts[] = {f->code,         f->name,        f->name_hash,   f->file,
                              f->file_chars,   f->lines,       f->lines_bytes, f->first_line,
                              f->line_ends[0], f->line_ends[1]};
    uint64_t key = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        key = stack_name(key, parts[i]); // not 0
    }
    return key;
}

bool python_code_read(const struct python_layout *l, uint64_t code, struct python_code_facts *out)
{
    if (code % sizeof(uint64_t) != 0 || !python_memory_holds(code, l->code.instructions)) {
        return false;
    }
    struct python_code_facts f = {.code = code,
                                  .name = python_word(code + l->code.name),
                                  .file = python_word(code + l->code.file),
                                  .lines = python_word(code + l->code.lines),
                                  .first_line = python_half(code + l->code.first_line)};
    if (!python_memory_holds(f.name, l->text.other_data) ||
        !python_memory_holds(f.file, l->text.other_data) ||
        !python_memory_holds(f.lines, l->bytes.data)) {
        return false;
    }
    f.name_hash = python_word(f.name + l->text.hash); // names are interned: it is set
    f.file_chars = python_word(f.file + l->text.length);
    f.lines_bytes = python_word(f.lines + l->bytes.size);
    if (f.lines_bytes == 0 || f.lines_bytes > LINES_SIZE_MAX ||
        !python_memory_holds(f.lines + l->bytes.data, f.lines_bytes)) {
        return false;
    }
    read_ends(l, &f);
    f.key = key_of(&f);
    *out = f;
    return true;
}

bool python_code_is(const struct python_layout *l, const struct python_code_facts *f)
{
    // One after the other: each pointer is known to be good once those before it are the same.
    if (((python_word(f->code + l->code.name) ^ f->name) |
         (python_word(f->code + l->code.file) ^ f->file) |
         (python_word(f->code + l->code.lines) ^ f->lines) |
         (python_half(f->code + l->code.first_line) ^ f->first_line)) != 0 ||
        ((python_word(f->name + l->text.hash) ^ f->name_hash) |
         (python_word(f->file + l->text.length) ^ f->file_chars) |
         (python_word(f->lines + l->bytes.size) ^ f->lines_bytes)) != 0) {
        return false;
    }
    struct python_code_facts now = {.lines = f->lines, .lines_bytes = f->lines_bytes};
    read_ends(l, &now);
    return now.line_ends[0] == f->line_ends[0] && now.line_ends[1] == f->line_ends[1];
}

// Append a character as UTF-8. Returns the new length; the old one if there is no room.
static size_t append_character(char *text, size_t len, size_t max, uint32_t c)
{
    if (c == 0 || c > 0x10ffff) {
        c = '?';
    }
    const size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    if (len + more >= max) {
        return len;
    }
    text[len++] = (char)(heads[more] | c >> (6 * more));
    for (size_t i = more; i > 0; i--) {
        text[len++] = (char)(0x80 | (c >> (6 * (i - 1)) & 0x3f));
    }
    return len;
}

// Append a text of Python's, cut to `max_bytes`. Returns the new length.
static size_t append_text(
    const struct python_layout *l, uint64_t object, char *text, size_t len, size_t max_bytes)
{
    const uint32_t state = python_half(object + l->text.state);
    const uint64_t size = state >> TEXT_KIND_SHIFT & TEXT_KIND_MASK; // of a character
    uint64_t length = python_word(object + l->text.length);
    length = length < max_bytes ? length : max_bytes;
    const uint64_t data =
        object + ((state & TEXT_IS_ASCII) != 0 ? l->text.ascii_data : l->text.other_data);
    const size_t end = len + max_bytes;
    if ((state & TEXT_IS_COMPACT) == 0 || (size != 1 && size != 2 && size != 4) || length == 0 ||
        !python_memory_holds(data, length * size)) {
        return append_character(text, len, end, '?');
    }
    for (uint64_t i = 0; i < length; i++) {
        uint32_t c = 0;
        __builtin_memcpy(&c, (const void *)(data + i * size), size); // little endian
        len = append_character(text, len, end, c);
    }
    return len;
}

// Write the text of a code object; false if there is no room.
static bool write_text(struct code_table *table,
                       uint32_t number,
                       const struct python_layout *l,
                       const struct python_code_facts *facts)
{
    char text[TEXT_BYTES_MAX] = PREFIX;
    size_t len = append_text(l, facts->name, text, sizeof(PREFIX) - 1, FUNCTION_BYTES_MAX);
    text[len++] = ':';
    text[len++] = '/';
    len = append_text(l, facts->file, text, len, FILE_BYTES_MAX);
    text[len++] = '\0';
    // Relaxed: a thread's own place.
    uint32_t at = atomic_load_explicit(&table->texts_used, memory_order_relaxed);
    do {
        if (len > sizeof(table->text) - at) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&table->texts_used, &at, at + (uint32_t)len,
                                                    memory_order_relaxed, memory_order_relaxed));
    __builtin_memcpy(table->text + at, text, len);
    // Release: a thread that acquires it may read the text.
    atomic_store_explicit(&table->texts[number], at, memory_order_release);
    return true;
}

// Return the number of a key, claimed if it is new; 0 if there is no room.
static uint32_t find_or_claim(struct code_table *table, uint64_t key)
{
    for (uint32_t i = 0; i < PROBES_MAX; i++) {
        const uint32_t number = 1 + (uint32_t)((key + i) % (PYTHON_CODES_MAX - 1));
        uint64_t found = atomic_load_explicit(&table->keys[number], memory_order_relaxed);
        // Relaxed: the key guards no other data.
        if (found == key ||
            (found == 0 &&
             atomic_compare_exchange_strong_explicit(&table->keys[number], &found, key,
                                                     memory_order_relaxed, memory_order_relaxed)) ||
            found == key) {
            return number;
        }
    }
    return 0;
}

static uint32_t line_at(struct code_table *table,
                        uint32_t number,
                        uint64_t unit,
                        const struct python_layout *l,
                        const struct python_code_facts *facts)
{
    const uint64_t what = (uint64_t)number << UNIT_BITS | unit;
    _Atomic uint64_t *known = &table->lines[hash_mix(what) % LINES_KNOWN];
    // Relaxed: the word is all there is.
    const uint64_t word = atomic_load_explicit(known, memory_order_relaxed);
    if (word >> LINE_BITS == what && word != 0) {
        return (uint32_t)word & (PYTHON_CODE_LINES - 1);
    }
    const uint8_t *lines = (const uint8_t *)(facts->lines + l->bytes.data);
    uint32_t line = l->code.bytecode != 0
                        ? python_lines_find_pair(lines, facts->lines_bytes, facts->first_line, unit)
                        : python_lines_find(lines, facts->lines_bytes, facts->first_line, unit);
    line = line < PYTHON_CODE_LINES - 2 ? line : 0;
    atomic_store_explicit(known, what << LINE_BITS | line, memory_order_relaxed);
    return line;
}

uint64_t python_code_pc(const struct python_layout *layout,
                        const struct python_code_facts *facts,
                        uint64_t instruction)
{
    struct code_table *table = table_now();
    if (table == NULL) {
        return PYTHON_CODE_BASE + 1; // of number 0
    }
    uint32_t number = find_or_claim(table, facts->key);
    // Acquire: pairs with write_text.
    if (number != 0 && atomic_load_explicit(&table->texts[number], memory_order_acquire) == 0 &&
        !write_text(table, number, layout, facts)) {
        number = 0;
    }
    // Before its first instruction a frame's instruction is the one before it: the first line.
    const uint64_t unit =
        layout->code.bytecode != 0
            ? (uint32_t)instruction
            : (instruction - facts->code - layout->code.instructions) / UNIT_BYTES;
    uint32_t line = facts->first_line;
    if (number != 0 && unit < 1u << UNIT_BITS) {
        line = line_at(table, number, unit, layout, facts);
    }
    line = number != 0 && line < PYTHON_CODE_LINES - 2 ? line : 0;
    return PYTHON_CODE_BASE + number * PYTHON_CODE_LINES + line + 1;
}

bool python_code_module(uint64_t pc, struct unwind_module *out)
{
    const struct code_table *table = table_now();
    const uint64_t number = (pc - 1 - PYTHON_CODE_BASE) / PYTHON_CODE_LINES;
    if (table == NULL || pc - 1 < PYTHON_CODE_BASE || number >= PYTHON_CODES_MAX) {
        return false;
    }
    const uint64_t start = PYTHON_CODE_BASE + number * PYTHON_CODE_LINES;
    // Acquire: pairs with write_text.
    const uint32_t text = atomic_load_explicit(&table->texts[number], memory_order_acquire);
    *out = (struct unwind_module){.start = start,
                                  .end = start + PYTHON_CODE_LINES,
                                  .bias = start,
                                  .path = table->text + text};
    return true;
}
