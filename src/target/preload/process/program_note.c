// SPDX-License-Identifier: MIT
#include "target/preload/process/program_note.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/elf_note.h"

#define GO_BUILD_ID 4u // golang.org/src/cmd/link/internal/ld/elf.go: ELF_NOTE_GOBUILDID_TAG

static const char go_owner[4] = "Go"; // and two zero bytes, which its linker counts

static bool holds_go_note(struct bytes notes)
{
    struct cursor at = cursor_over(notes);
    struct elf_note note;
    while (elf_note_next(&at, &note)) {
        if (elf_note_is(&note, GO_BUILD_ID, go_owner, sizeof(go_owner))) {
            return true;
        }
    }
    return false;
}

bool program_note_is_go(void)
{
    const Elf64_Phdr *headers =
        (const Elf64_Phdr *)getauxval(AT_PHDR); // NOLINT(performance-no-int-to-ptr)
    const uint64_t count = headers != NULL ? getauxval(AT_PHNUM) : 0;
    uint64_t bias = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_PHDR) {
            bias = (uint64_t)headers - headers[i].p_vaddr;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        const Elf64_Phdr *header = headers + i;
        if (header->p_type == PT_NOTE && header->p_align == 4 &&
            holds_go_note((struct bytes){
                .data =
                    (const uint8_t *)(bias + header->p_vaddr), // NOLINT(performance-no-int-to-ptr)
                .len = header->p_memsz})) {
            return true;
        }
    }
    return false;
}
