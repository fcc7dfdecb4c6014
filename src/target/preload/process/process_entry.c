// SPDX-License-Identifier: MIT
// process_entry: see process_entry.h; the preload library's way.
#include "target/preload/process/process_entry.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/elf_note.h"
#include "base/page_alloc.h"
#include "base/sys.h"
#include "session/runtime_settings.h"
#include "target/preload/process/process.h"
#include "target/preload/real/definitions.h"
#include "target/preload/real/environment.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/real/real_mappings.h"

// Written only while joining.
static bool g_is_go;
static uint32_t g_settings;

extern char **environ;

// Weak: musl, where nothing is recorded, lacks it. A musl program gets here when a static program,
// which has no hooks, executes it: our library must load there and do nothing.
extern const char *gnu_get_libc_version(void) __attribute__((weak));

// The ELF notes of the main program say whether it is a Go program. AT_PHDR finds them without the
// loader, in memory that the program's file has mapped.

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

// Whether Go's linker made the program (its build id is a note of owner "Go", type 4).
static bool program_note_is_go(void)
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

// Before the environment is there, the loader itself allocates, and no image runs.
bool process_entry_is_open(void)
{
    return gnu_get_libc_version != NULL && environment_is_there();
}

// The kernel cannot wipe a page on fork before Linux 4.14.
bool process_entry_page(struct process_page **out)
{
    struct process_page *page = page_alloc(sizeof(*page));
    if (page == NULL) {
        return false;
    }
    if (sys_failed(sys_madvise(page, PAGE_GRAIN, MADV_WIPEONFORK))) {
        page_free(page, sizeof(*page));
        return false;
    }
    *out = page;
    return true;
}

bool process_entry_is_in(const struct session_mapping *mapping)
{
    return mapping->header != NULL;
}

bool process_entry_is_forked(bool was_in)
{
    return was_in;
}

enum err process_entry_find_session(struct session_mapping *mapping)
{
    const char *place = environment_session();
    real_functions_resolve(); // the first hook may be a mapping
    real_mappings_resolve();
    if (place == NULL) {
        return ERR_NOT_FOUND;
    }
    TRY(session_join(place, mapping));
    environment_remember();
    g_is_go = program_note_is_go();
    g_settings = runtime_settings_in(environ);
    return ERR_OK;
}

uint64_t *process_entry_mapped_words(void)
{
    return NULL;
}

// With glibc's malloc each block has a word of 32 bytes to itself.
const _Atomic uint32_t *process_entry_tiny_below(void)
{
    static const _Atomic uint32_t small = WORDS_TINY_SMALL;
    uint64_t address;
    memcpy(&address, &g_real.malloc, sizeof(address));
    const struct link_map *libc = definition_module_at((uint64_t)gnu_get_libc_version);
    return libc != NULL && definition_module_at(address) == libc ? NULL : &small;
}

uint32_t process_entry_flags(bool is_forked)
{
    const bool is_bypassed = !is_forked && real_functions_are_bypassed();
    return (is_bypassed ? PROCESS_OWN_ALLOCATOR : 0) | (g_is_go ? PROCESS_GO : 0) |
           PROCESS_NOTES_EXIT | PROCESS_SETTINGS | g_settings << PROCESS_SETTINGS_SHIFT;
}
