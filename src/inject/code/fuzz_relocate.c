// SPDX-License-Identifier: MIT
// fuzz_relocate: move the first instructions of any bytes. What is moved must decode at its new
// place, and the table of moves must be one of instructions.
//
// Input: the function's size (2 bytes), the trampoline's distance in units of 64 bytes (4 bytes),
// then the function.
#include <stdbool.h>
#include <stdlib.h>

#include "inject/code/relocate.h"

#define ENTRY 0x7f0000000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

// Move the moved code once more: nothing in it may be beyond the decoder.
static void check_again(const struct relocated *moved, uint64_t trampoline)
{
    struct relocated again = {0};
    const struct bytes code = {moved->code, moved->code_len};
    const enum relocate_refusal refusal =
        relocate_prologue(code, moved->code_len, trampoline, trampoline + PATCH_BYTES, &again);
    if (refusal == RELOCATE_UNDECODABLE || refusal == RELOCATE_UNMOVABLE ||
        refusal == RELOCATE_BREAKPOINT) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 6) {
        return 0;
    }
    const uint64_t size_bytes = get_u16(data);
    const uint64_t trampoline = ENTRY + (uint64_t)(int32_t)get_u32(data + 2) * 64;
    struct relocated moved = {0};
    const struct bytes code = {data + 6, len - 6};
    const enum relocate_refusal refusal =
        relocate_prologue(code, size_bytes, ENTRY, trampoline, &moved);
    if (*relocate_refusal_text(refusal) == '\0' && refusal != RELOCATE_OK) {
        abort();
    }
    if (refusal != RELOCATE_OK) {
        return 0;
    }
    bool is_sound = moved.code_len <= TRAMPOLINE_BYTES && moved.old_len <= code.len &&
                    moved.move_count < PATCH_BYTES;
    struct relocate_move before = {0};
    for (uint8_t i = 0; is_sound && i < moved.move_count; i++) {
        const struct relocate_move move = moved.moves[i];
        is_sound = move.from > before.from && move.from < PATCH_BYTES && move.to > before.to &&
                   move.to < moved.code_len;
        before = move;
    }
    if (!is_sound) {
        abort();
    }
    check_again(&moved, trampoline);
    return 0;
}
