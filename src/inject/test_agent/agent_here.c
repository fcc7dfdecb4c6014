// SPDX-License-Identifier: MIT
// agent_here: see agent_here.h.
#include "inject/test_agent/agent_here.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/err.h"
#include "inject/agent_image.h"
#include "inject/code/relocate.h"
#include "session/books/block_words.h"
#include "session/books/book_layout.h"
#include "session/layout.h"

enum {
    SLOT_BYTES = STUB_BYTES + TRAMPOLINE_BYTES,
    NEAR_BYTES = 4096, // of stubs and trampolines
    PATCHES_MAX = NEAR_BYTES / SLOT_BYTES,
    READABLE_BYTES = 64, // of a function
};

struct patched {
    uint8_t *entry;
    uint8_t old[PATCH_BYTES];
};

static struct fixture {
    struct bytes file;    // the agent's
    const uint8_t *agent; // where it is mapped
    struct agent_page *page;
    struct agent_attachment *attachment;
    struct session_header *session;
    struct words_file *words;
    uint8_t *near;      // of this program's text
    uint8_t *near_libc; // of libc's
    struct patched patched[PATCHES_MAX];
    uint32_t patch_count;
} f;

static void require(bool is_good, const char *what)
{
    if (!is_good) {
        (void)fprintf(stderr, "agent_here: %s\n", what);
        abort();
    }
}

// Map memory that a branch at `text` reaches.
static uint8_t *map_near(const void *text)
{
    const uintptr_t around = (uintptr_t)text & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    for (uintptr_t distance = (uintptr_t)1 << 20; distance < (uintptr_t)120 << 20;
         distance += (uintptr_t)1 << 20) {
        for (int sign = 0; sign < 2; sign++) {
            uint8_t *wanted = (uint8_t *)(sign == 0 ? around - distance : around + distance);
            uint8_t *got = mmap(wanted, NEAR_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (got == wanted) {
                return got;
            }
            (void)munmap(got, NEAR_BYTES); // elsewhere
        }
    }
    require(false, "memory near the text");
    return NULL;
}

static void map_session(void)
{
    const int fd = memfd_create("session", MFD_CLOEXEC);
    require(fd >= 0, "memory for the session");
    require(ftruncate(fd, (off_t)SESSION_FILE_BYTES_MAX) == 0, "the session's size");
    f.session = mmap(NULL, SESSION_BYTES, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    require(f.session != MAP_FAILED &&
                mprotect(f.session, SESSION_LANES_OFFSET, PROT_READ | PROT_WRITE) == 0,
            "the session");
    f.words = mmap(NULL, WORDS_FILE_BYTES, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd,
                   (off_t)SESSION_WORDS_OFFSET);
    require(f.words != MAP_FAILED &&
                mprotect(f.words, WORDS_HEADER_BYTES, PROT_READ | PROT_WRITE) == 0,
            "the words");
    (void)close(fd); // the mappings keep it
    f.words->magic = WORDS_MAGIC;
    f.session->flags = SESSION_BLOCKS;
    atomic_store(&f.session->seen_peak, UINT32_MAX); // no birth is later, so each block is told
    f.session->magic = SESSION_MAGIC;
    f.session->version = SESSION_VERSION;
    f.session->session_bytes = SESSION_BYTES;
    f.session->max_frames = 64;
    f.session->recorder_pid = (uint32_t)getpid();
    atomic_store(&f.session->state, SESSION_RUNNING);
}

static void *zeroed(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(memory != MAP_FAILED, "memory");
    return memory;
}

static struct bytes read_agent(void)
{
    const int fd = open(AGENT_FILE, O_RDONLY | O_CLOEXEC);
    struct stat found;
    require(fd >= 0 && fstat(fd, &found) == 0, AGENT_FILE);
    uint8_t *bytes = malloc((size_t)found.st_size);
    require(bytes != NULL && read(fd, bytes, (size_t)found.st_size) == found.st_size, AGENT_FILE);
    (void)close(fd); // only read
    return (struct bytes){bytes, (size_t)found.st_size};
}

// Describe an ELF object that is mapped at `at`.
static struct agent_module describe(uint64_t at)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)at;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(at + header->e_phoff);
    struct agent_module module = {.start = at,
                                  .bias = at,
                                  .headers = (uint64_t)segments,
                                  .header_count = header->e_phnum,
                                  .flags = AGENT_MODULE_STAYS};
    for (size_t i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD) {
            module.end = at + segments[i].p_vaddr + segments[i].p_memsz;
        } else if (segments[i].p_type == PT_GNU_EH_FRAME) {
            module.eh_frame_hdr = at + segments[i].p_vaddr;
        }
    }
    require(module.eh_frame_hdr != 0, "unwind tables");
    return module;
}

static uint64_t program_start(void)
{
    Dl_info info;
    require(dladdr((const void *)(uintptr_t)agent_here_begin, &info) != 0, "this program");
    return (uint64_t)info.dli_fbase;
}

// Tell the agent of this program and of itself.
static void list_modules(void)
{
    struct agent_module program = describe(program_start());
    struct agent_module agent = describe((uint64_t)f.agent);
    agent.path = 1;
    f.attachment = zeroed(sizeof(*f.attachment));
    f.attachment->lists[0].modules[program.start > agent.start] = program;
    f.attachment->lists[0].modules[program.start < agent.start] = agent;
    f.attachment->lists[0].count = 2;
    memcpy(f.attachment->paths + 1, "[agent]", sizeof("[agent]"));
    f.attachment->paths_bytes = 1 + sizeof("[agent]");
}

// Put the agent into this process as the injector does.
static void map_agent(void)
{
    f.file = read_agent();
    struct agent_image image;
    struct err_info info = {0};
    require(agent_image_init(&image, f.file, (uint64_t)sysconf(_SC_PAGESIZE), &info) == ERR_OK,
            info.text);
    uint8_t *at = zeroed(image.span);
    agent_image_relocate(&image, (uint64_t)at);
    memcpy(at, image.memory, image.span);
    for (size_t i = 0; i < image.segment_count; i++) {
        const struct agent_segment *segment = image.segments + i;
        require(mprotect(at + segment->start, segment->end - segment->start, segment->prot) == 0,
                "a segment of the agent");
    }
    __builtin___clear_cache((char *)at, (char *)at + image.span);
    f.agent = at;
    agent_image_release(&image);
    const uint64_t page = agent_image_symbol(f.file, AGENT_PAGE_SYMBOL);
    require(page != 0, AGENT_PAGE_SYMBOL);
    f.page = (struct agent_page *)(void *)(at + page);
}

static uint64_t address_of(const char *name)
{
    return (uint64_t)dlsym(RTLD_DEFAULT, name);
}

struct bytes agent_here_file(void)
{
    return f.file;
}

bool agent_here_is_frame(uint64_t frame, const char *pc)
{
    return frame >> WIRE_OFFSET_BITS != 0 &&
           (frame & WIRE_OFFSET_MASK) == (uint64_t)pc - program_start();
}

struct agent_page *agent_here_begin(void)
{
    map_agent();
    require(f.page->magic == AGENT_MAGIC && f.page->version == AGENT_VERSION, "the agent's page");
    list_modules();
    map_session();
    f.near = map_near((const void *)(uintptr_t)agent_here_begin);
    f.near_libc = map_near((const void *)address_of("malloc"));
    f.page->attachment = (uint64_t)f.attachment;
    f.page->process_page = (uint64_t)zeroed(AGENT_PROCESS_PAGE_BYTES);
    f.page->session = (uint64_t)f.session;
    f.page->words = (uint64_t)f.words;
    f.page->pid = (uint32_t)getpid();
    atomic_store(&f.page->enabled, 1);
    return f.page;
}

static void write_text(uint8_t *at, const uint8_t *bytes, size_t len)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint8_t *page = (uint8_t *)((uintptr_t)at & ~(page_bytes - 1)); // of the whole instruction
    require(mprotect(page, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) == 0, "text");
    memcpy(at, bytes, len);
    __builtin___clear_cache((char *)at, (char *)at + len);
}

static bool is_near(uint64_t function, const uint8_t *block)
{
    const uint64_t distance =
        function > (uint64_t)block ? function - (uint64_t)block : (uint64_t)block - function;
    return distance < (uint64_t)127 << 20;
}

uint32_t agent_here_patch(uint64_t function, enum agent_hook hook, uint64_t nothrow)
{
    require(f.patch_count < PATCHES_MAX, "room for patches");
    const uint32_t index = f.patch_count++;
    uint8_t *entry = (uint8_t *)function;
    uint8_t *stub = (is_near(function, f.near) ? f.near : f.near_libc) + (size_t)index * SLOT_BYTES;
    uint8_t *trampoline = stub + STUB_BYTES;
    struct relocated moved;
    const enum relocate_refusal refusal = relocate_prologue(
        (struct bytes){entry, READABLE_BYTES}, 0, function, (uint64_t)trampoline, &moved);
    require(refusal == RELOCATE_OK, relocate_refusal_text(refusal));
    memcpy(trampoline, moved.code, moved.code_len);
    relocate_write_stub(&moved, index, (uint64_t)f.page->hooks[hook], stub);
    __builtin___clear_cache((char *)stub, (char *)stub + SLOT_BYTES);
    f.attachment->patches[index] =
        (struct agent_patch){.original = (uint64_t)trampoline, .nothrow = nothrow};
    uint8_t jump[PATCH_BYTES];
    entry += moved.kept_len;
    require(relocate_write_jump((uint64_t)entry, (uint64_t)stub, jump) == RELOCATE_OK, "the jump");
    f.patched[index].entry = entry;
    memcpy(f.patched[index].old, entry, PATCH_BYTES);
    write_text(entry, jump, sizeof(jump));
    return index;
}

void agent_here_unpatch(uint32_t index)
{
    write_text(f.patched[index].entry, f.patched[index].old, PATCH_BYTES);
}

static size_t words_of(uint64_t head)
{
    switch (head & 0xff) {
    case WIRE_PAD:
        return head >> 8;
    case WIRE_GREW:
        return 2;
    case WIRE_BOOK:
        return book_record_words(head);
    case WIRE_BLOCK_BORN:
    case WIRE_BLOCK_FREED:
        return WIRE_BLOCK_WORDS;
    case WIRE_MODULE:
        return 4 + ((head >> 24 & 0xff) + 7) / 8 + ((head >> 32 & 0xffff) + 7) / 8;
    case WIRE_STACK:
        return 2 + (head >> 8 & 0xff);
    case WIRE_TEXT:
        return 1 + ((head >> 24 & 0xffff) + 7) / 8;
    case WIRE_TICK:
    case WIRE_ROW:
        return 1;
    default:
        require(false, "a record of an unknown kind");
        return 0;
    }
}

static uint64_t ring_word(struct lane_header *lane, uint64_t pos)
{
    uint64_t word;
    memcpy(&word, lane_ring(lane) + pos % atomic_load(&lane->ring_bytes), sizeof(word));
    return word;
}

// Append what a thread has sent since the last call.
static void take_records(struct lane_header *lane, struct records *out)
{
    const uint64_t end = atomic_load(&lane->write_pos);
    uint64_t pos = atomic_load(&lane->read_pos);
    while (pos < end) {
        const size_t words = words_of(ring_word(lane, pos));
        require(words != 0 && out->count < RECORDS_MAX, "room for records");
        struct record *record = &out->items[out->count++];
        *record = (struct record){.words = {0}};
        for (size_t i = 0; i < words && i < ARRAY_LEN(record->words); i++) {
            record->words[i] = ring_word(lane, pos + 8 * i);
        }
        for (size_t i = 0; i < words && i < RECORD_LEAVES; i++) {
            record->leaves[i] = ring_word(lane, pos + 8 * (words - 1 - i));
        }
        pos += 8 * words;
    }
    require(pos == end, "whole records");
    atomic_store(&lane->read_pos, pos);
}

void agent_here_take(struct records *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < SESSION_MAX_LANES; i++) {
        if ((atomic_load(&f.session->lane_bitmap[i / 64]) >> i % 64 & 1) != 0) {
            take_records(session_lane(f.session, i), out);
        }
    }
}

uint64_t agent_here_unknown_frees(void)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < SESSION_MAX_LANES; i++) {
        if ((atomic_load(&f.session->lane_bitmap[i / 64]) >> i % 64 & 1) != 0) {
            count += atomic_load(&session_lane(f.session, i)->unknown_frees);
        }
    }
    return count;
}
