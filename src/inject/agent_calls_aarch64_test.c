// SPDX-License-Identifier: MIT
// agent_calls_aarch64_test: the agent itself in this process, and functions of this process that
// are patched to call it.
//
// Nothing is injected: the test lays the agent out, and does what the recorder would do. It calls
// each kind of function with registers that it has drawn, and compares every register afterwards,
// the arguments that the original got, the result, and what the agent sent. Then it patches libc's
// allocator. Seed: CAIRN_TEST_SEED. Context: H. AArch64, also emulated.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/random_numbers.h"
#include "inject/agent_image.h"
#include "inject/code/relocate.h"
#include "session/agent_page.h"
#include "session/layout.h"
#include "session/wire.h"

enum {
    DRAWS = 30, // of registers, for each kind and way
    SLOTS = 64, // of the near block
    SLOT_BYTES = STUB_BYTES + TRAMPOLINE_BYTES,
    PAGE = 4096,
    RECORDS_MAX = 16384,
    THREADS = 4,
    BLOCKS = 50,
};

// By their places in the code below.
struct registers {
    uint64_t x[31];
    uint64_t sp;
    uint64_t flags; // NZCV
    uint64_t fpsr;
    uint64_t q[32][2];
};
_Static_assert(offsetof(struct registers, sp) == 248, "behind x30");
_Static_assert(offsetof(struct registers, flags) == 256, "behind sp");
_Static_assert(offsetof(struct registers, q) == 272, "behind fpsr");

// What an original function has got, and is to return.
struct original {
    uint64_t arguments[8];
    uint64_t calls;
    uint64_t result;
};

struct original original_seen;
struct original nothrow_seen;

// Call `function` with the registers of `in`, but for x16, x17, x29, x30 and sp, which are our own.
// `out` gets all registers after it has returned, and in `sp` the sp of before minus that.
void call_with_registers(const struct registers *in, struct registers *out, uint64_t function);

// Each begins with an instruction that depends on its address.
void original_with_result(void); // returns original_seen.result, and changes x16 and x17 besides
void original_without_result(void);
void nothrow_form(void);
extern const char return_of_call[];

// For all vector registers, at x0.
#define PAIR(instruction, first, second) \
    "    " instruction " q" #first ", q" #second ", [x0, #16 * " #first "]\n"
#define VECTORS(instruction)  \
    PAIR(instruction, 0, 1)   \
    PAIR(instruction, 2, 3)   \
    PAIR(instruction, 4, 5)   \
    PAIR(instruction, 6, 7)   \
    PAIR(instruction, 8, 9)   \
    PAIR(instruction, 10, 11) \
    PAIR(instruction, 12, 13) \
    PAIR(instruction, 14, 15) \
    PAIR(instruction, 16, 17) \
    PAIR(instruction, 18, 19) \
    PAIR(instruction, 20, 21) \
    PAIR(instruction, 22, 23) \
    PAIR(instruction, 24, 25) \
    PAIR(instruction, 26, 27) \
    PAIR(instruction, 28, 29) \
    PAIR(instruction, 30, 31)

#define LOAD_VECTORS  VECTORS("ldp")
#define STORE_VECTORS VECTORS("stp")

__asm__(".text\n"
        "    .globl call_with_registers, return_of_call\n"
        "    .type call_with_registers, @function\n"
        "call_with_registers:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, #-192]!\n"
        "    .cfi_def_cfa_offset 192\n"
        "    .cfi_offset x29, -192\n"
        "    .cfi_offset x30, -184\n"
        "    mov x29, sp\n"
        "    stp x19, x20, [sp, #16]\n"
        "    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    str x1, [sp, #160]\n"
        "    mov x17, x0\n"
        "    mov x16, x2\n"
        "    ldr x0, [x17, #256]\n"
        "    msr nzcv, x0\n"
        "    ldr x0, [x17, #264]\n"
        "    msr fpsr, x0\n"
        "    add x0, x17, #272\n" LOAD_VECTORS
        "    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "    ldr x\\n, [x17, #(8 * \\n)]\n"
        "    .endr\n"
        "    .irp n, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28\n"
        "    ldr x\\n, [x17, #(8 * \\n)]\n"
        "    .endr\n"
        "    blr x16\n"
        "return_of_call:\n"
        "    mov x16, sp\n"
        "    sub x17, x29, x16\n"
        "    ldr x16, [x16, #160]\n"
        "    str x17, [x16, #248]\n"
        "    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "    str x\\n, [x16, #(8 * \\n)]\n"
        "    .endr\n"
        "    .irp n, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30\n"
        "    str x\\n, [x16, #(8 * \\n)]\n"
        "    .endr\n"
        "    mrs x0, nzcv\n"
        "    str x0, [x16, #256]\n"
        "    mrs x0, fpsr\n"
        "    str x0, [x16, #264]\n"
        "    add x0, x16, #272\n" STORE_VECTORS "    ldp d14, d15, [sp, #144]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp x25, x26, [sp, #64]\n"
        "    ldp x23, x24, [sp, #48]\n"
        "    ldp x21, x22, [sp, #32]\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x29, x30, [sp], #192\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "    ret\n"
        "    .cfi_endproc\n"
        "    .size call_with_registers, . - call_with_registers\n"

        ".macro original name, seen, loads:vararg\n"
        "    .balign 16\n"
        "    .globl \\name\n"
        "    .type \\name, @function\n"
        "\\name:\n"
        "    adrp x16, \\seen\n"
        "    add x16, x16, :lo12:\\seen\n"
        "    stp x0, x1, [x16]\n"
        "    stp x2, x3, [x16, #16]\n"
        "    stp x4, x5, [x16, #32]\n"
        "    stp x6, x7, [x16, #48]\n"
        "    ldr x17, [x16, #64]\n"
        "    add x17, x17, #1\n"
        "    str x17, [x16, #64]\n"
        "    \\loads\n"
        "    ret\n"
        "    .size \\name, . - \\name\n"
        ".endm\n"
        "    original original_with_result, original_seen, ldr x0, [x16, #72]\n"
        "    original original_without_result, original_seen, nop\n"
        "    original nothrow_form, nothrow_seen, ldr x0, [x16, #72]\n");

struct patched {
    uint8_t *entry;
    uint8_t old[PATCH_BYTES];
};

static struct fixture {
    struct bytes file; // the agent's
    struct agent_page *page;
    struct agent_attachment *attachment;
    struct session_header *session;
    uint8_t *near;      // of this program's text
    uint8_t *near_libc; // of libc's
    struct patched patched[2 * SLOTS];
    uint32_t patch_count;
    uint64_t random;
} f;

static uint64_t drawn(void)
{
    return next_random(&f.random);
}

// Map memory that a branch at `text` reaches.
static uint8_t *map_near(const void *text)
{
    const uintptr_t around = (uintptr_t)text & ~(uintptr_t)(PAGE - 1);
    for (uintptr_t distance = (uintptr_t)1 << 20; distance < (uintptr_t)120 << 20;
         distance += (uintptr_t)1 << 20) {
        for (int sign = 0; sign < 2; sign++) {
            uint8_t *wanted = (uint8_t *)(sign == 0 ? around - distance : around + distance);
            uint8_t *got = mmap(wanted, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (got == wanted) {
                return got;
            }
            (void)munmap(got, PAGE); // elsewhere
        }
    }
    fail_msg("no memory near %p", text);
    return NULL;
}

static void map_session(void)
{
    const int fd = memfd_create("session", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)SESSION_BYTES), 0);
    f.session = mmap(NULL, SESSION_BYTES, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    assert_ptr_not_equal(f.session, MAP_FAILED);
    assert_int_equal(mprotect(f.session, SESSION_LANES_OFFSET, PROT_READ | PROT_WRITE), 0);
    (void)close(fd); // the mapping keeps it
    f.session->magic = SESSION_MAGIC;
    f.session->version = SESSION_VERSION;
    f.session->session_bytes = SESSION_BYTES;
    f.session->max_frames = 64;
    f.session->recorder_pid = (uint32_t)getpid();
    f.session->flags = SESSION_NO_NURSERY;
    f.session->stamp_source = STAMPS_OF_COUNTER;
    atomic_store(&f.session->state, SESSION_RUNNING);
}

static void *zeroed(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static struct bytes read_agent(void)
{
    const int fd = open(AGENT_FILE, O_RDONLY | O_CLOEXEC);
    struct stat found;
    assert_true(fd >= 0 && fstat(fd, &found) == 0);
    uint8_t *bytes = malloc((size_t)found.st_size);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)found.st_size), found.st_size);
    (void)close(fd); // only read
    return (struct bytes){bytes, (size_t)found.st_size};
}

// Put the agent into this process as the injector does.
static void map_agent(void)
{
    f.file = read_agent();
    struct agent_image image;
    struct err_info info = {0};
    if (agent_image_init(&image, f.file, &info) != ERR_OK) {
        fail_msg("%s", info.text);
    }
    uint8_t *at = zeroed(image.span);
    agent_image_relocate(&image, (uint64_t)at);
    memcpy(at, image.memory, image.span);
    for (size_t i = 0; i < image.segment_count; i++) {
        const struct agent_segment *segment = image.segments + i;
        assert_int_equal(
            mprotect(at + segment->start, segment->end - segment->start, segment->prot), 0);
    }
    __builtin___clear_cache((char *)at, (char *)at + image.span);
    agent_image_release(&image);
    const uint64_t page = agent_image_symbol(f.file, AGENT_PAGE_SYMBOL);
    assert_true(page != 0);
    f.page = (struct agent_page *)(void *)(at + page);
}

static int set_up(void **state)
{
    (void)state;
    const char *seed = getenv("CAIRN_TEST_SEED");
    f.random = seed != NULL ? strtoull(seed, NULL, 0) | 1 : 0x9e3779b97f4a7c15u;
    map_agent();
    assert_true(f.page->magic == AGENT_MAGIC && f.page->version == AGENT_VERSION);
    f.attachment = zeroed(sizeof(*f.attachment));
    map_session();
    f.near = map_near((const void *)(uintptr_t)original_with_result);
    f.near_libc = map_near(dlsym(RTLD_DEFAULT, "malloc"));
    f.page->attachment = (uint64_t)f.attachment;
    f.page->process_page = (uint64_t)zeroed(AGENT_PROCESS_PAGE_BYTES);
    f.page->session = (uint64_t)f.session;
    f.page->pid = (uint32_t)getpid();
    atomic_store(&f.page->enabled, 1);
    return 0;
}

static void write_text(uint8_t *at, const uint8_t *bytes, size_t len)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint8_t *page = (uint8_t *)((uintptr_t)at & ~(page_bytes - 1)); // of the whole instruction
    assert_int_equal(mprotect(page, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    memcpy(at, bytes, len);
    __builtin___clear_cache((char *)at, (char *)at + len);
}

// Patch a function; return its index.
static uint32_t patch(uint64_t function, enum agent_hook hook, uint8_t *near, uint64_t nothrow)
{
    const uint32_t index = f.patch_count++;
    uint8_t *entry = (uint8_t *)function;
    uint8_t *stub = near + (size_t)(index % SLOTS) * SLOT_BYTES;
    uint8_t *trampoline = stub + STUB_BYTES;
    struct relocated moved;
    const enum relocate_refusal refusal =
        relocate_prologue((struct bytes){entry, 64}, 0, function, (uint64_t)trampoline, &moved);
    if (refusal != RELOCATE_OK) {
        fail_msg("the function %s", relocate_refusal_text(refusal));
    }
    memcpy(trampoline, moved.code, moved.code_len);
    relocate_write_stub(index, (uint64_t)f.page->hooks[hook], stub);
    __builtin___clear_cache((char *)stub, (char *)stub + SLOT_BYTES);
    f.attachment->patches[index] =
        (struct agent_patch){.original = (uint64_t)trampoline, .nothrow = nothrow};
    uint8_t jump[PATCH_BYTES];
    assert_int_equal(relocate_write_jump(function, (uint64_t)stub, jump), RELOCATE_OK);
    f.patched[index].entry = entry;
    memcpy(f.patched[index].old, entry, PATCH_BYTES);
    write_text(entry, jump, sizeof(jump));
    return index;
}

static void unpatch(uint32_t index)
{
    write_text(f.patched[index].entry, f.patched[index].old, PATCH_BYTES);
}

struct record {
    uint64_t words[4];
    uint64_t leaf; // of a STACK: its last frame
};

struct records {
    struct record items[RECORDS_MAX];
    size_t count;
};

static size_t words_of(uint64_t head)
{
    switch (head & 0xff) {
    case WIRE_PAD:
        return head >> 8;
    case WIRE_ALLOC:
    case WIRE_GREW:
        return 2;
    case WIRE_ALLOC_LARGE:
    case WIRE_REALLOC:
    case WIRE_REALLOC_TEMPORARY:
        return 3;
    case WIRE_REALLOC_LARGE:
    case WIRE_REALLOC_LARGE_TEMPORARY:
        return 4;
    case WIRE_STACK:
        return 2 + (head >> 8 & 0xff);
    case WIRE_TEXT:
        return 1 + ((head >> 24 & 0xffff) + 7) / 8;
    case WIRE_FREE:
    case WIRE_FREE_TEMPORARY:
    case WIRE_TICK:
    case WIRE_STAMP:
        return 1;
    default:
        fail_msg("a record with tag %u", (unsigned)(head & 0xff));
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
        assert_true(words != 0 && out->count < RECORDS_MAX);
        struct record *record = &out->items[out->count++];
        *record = (struct record){.leaf = ring_word(lane, pos + 8 * (words - 1))};
        for (size_t i = 0; i < words && i < ARRAY_LEN(record->words); i++) {
            record->words[i] = ring_word(lane, pos + 8 * i);
        }
        pos += 8 * words;
    }
    assert_int_equal(pos, end);
    atomic_store(&lane->read_pos, pos);
}

// Take the records of all lanes.
static void take_all(struct records *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < SESSION_MAX_LANES; i++) {
        if ((atomic_load(&f.session->lane_bitmap[i / 64]) >> i % 64 & 1) != 0) {
            take_records(session_lane(f.session, i), out);
        }
    }
}

static bool has_tag(const struct record *record, enum wire_tag tag)
{
    return (record->words[0] & 0xff) == tag;
}

static struct records g_records;

// Assert that one block was recorded: with `tag`, at `address`.
static void expect_one(enum wire_tag tag, enum wire_tag or_tag, uint64_t address)
{
    take_all(&g_records);
    size_t found = 0;
    for (size_t i = 0; i < g_records.count; i++) {
        const struct record *record = &g_records.items[i];
        if (!has_tag(record, WIRE_STACK) && !has_tag(record, WIRE_TEXT) &&
            !has_tag(record, WIRE_TICK) && !has_tag(record, WIRE_PAD) &&
            !has_tag(record, WIRE_STAMP) && !has_tag(record, WIRE_GREW)) {
            assert_true(has_tag(record, tag) || has_tag(record, or_tag));
            assert_int_equal(record->words[0] >> 8, address);
            found++;
        }
    }
    assert_int_equal(found, 1);
}

static void draw(struct registers *out)
{
    for (size_t i = 0; i < ARRAY_LEN(out->x); i++) {
        out->x[i] = drawn();
    }
    for (size_t i = 0; i < ARRAY_LEN(out->q); i++) {
        out->q[i][0] = drawn();
        out->q[i][1] = drawn();
    }
    out->flags = drawn() & 0xf0000000u;
    out->fpsr = drawn() & 0x0800001fu;
}

static void expect_kept(const struct registers *in, const struct registers *out, const char *what)
{
    for (size_t i = 1; i <= 28; i++) {
        if (i != 16 && i != 17 && out->x[i] != in->x[i]) {
            fail_msg("%s: x%zu was %llx and is %llx", what, i, (unsigned long long)in->x[i],
                     (unsigned long long)out->x[i]);
        }
    }
    assert_int_equal(out->sp, 0);
    assert_int_equal(out->x[30], (uint64_t)return_of_call);
    assert_int_equal(out->flags, in->flags);
    assert_int_equal(out->fpsr, in->fpsr);
    assert_memory_equal(out->q, in->q, sizeof(out->q));
}

// A block of a heap that only the numbers know.
static uint64_t drawn_block(void)
{
    return drawn() & 0x7ffffffffff0u;
}

static char text_block[] = "copied";
static uint64_t block_at;

// How a kind is called and what it does, for the arguments in `in`.
struct expectation {
    uint64_t result;  // of the original
    uint64_t address; // of the block in the record
    enum wire_tag tag;
    enum wire_tag or_tag;
    bool is_recorded;
    bool has_result;
};

static struct expectation prepare(struct registers *in, enum agent_hook hook)
{
    const struct agent_hook_shape shape = agent_hook_shape(hook);
    struct expectation e = {.result = drawn_block() | 16, .has_result = true, .is_recorded = true};
    if (shape.size_argument != AGENT_NONE) {
        in->x[shape.size_argument] = 1 + drawn() % (1u << 20);
    }
    if (shape.count_argument != AGENT_NONE) {
        in->x[shape.count_argument] = 1 + drawn() % 8;
    }
    if (shape.block_argument != AGENT_NONE) {
        in->x[shape.block_argument] = drawn_block() | 16;
    }
    e.address = e.result;
    e.tag = e.or_tag = WIRE_ALLOC;
    switch ((enum agent_effect)shape.effect) {
    case AGENT_ALLOCATES:
    case AGENT_ALLOCATES_OR_THROWS:
        break;
    case AGENT_ALLOCATES_AT:
        e.result = 0;
        block_at = e.address;
        in->x[0] = (uint64_t)&block_at;
        break;
    case AGENT_COPIES_TEXT:
        e.result = e.address = (uint64_t)text_block;
        break;
    case AGENT_RESIZES:
    case AGENT_RESIZES_OR_FREES:
        e.tag = WIRE_REALLOC;
        e.or_tag = WIRE_REALLOC_TEMPORARY;
        break;
    case AGENT_RESIZES_IN_PLACE:
        e.result = in->x[shape.size_argument] + 8; // the usable size
        e.address = in->x[shape.block_argument];
        e.tag = WIRE_REALLOC;
        e.or_tag = WIRE_REALLOC_TEMPORARY;
        break;
    case AGENT_FREES:
        e.has_result = false;
        e.address = in->x[0];
        e.tag = WIRE_FREE;
        e.or_tag = WIRE_FREE_TEMPORARY;
        break;
    case AGENT_CHANGES_MODULES:
        e.has_result = false;
        e.is_recorded = false;
        break;
    case AGENT_EXECUTES:
        e.is_recorded = false;
        break;
    }
    return e;
}

static const char *const kind_names[] = {
#define X(kind, effect, size, count, block) #kind,
    AGENT_HOOKS(X)
#undef X
};

// A kind of a hook: call it, recorded or not, and compare everything.
static void check_kind(enum agent_hook hook, bool is_enabled)
{
    atomic_store(&f.page->enabled, is_enabled);
    const bool may_throw = agent_hook_shape(hook).effect == AGENT_ALLOCATES_OR_THROWS;
    for (int i = 0; i < DRAWS; i++) {
        static struct registers in;
        static struct registers out;
        draw(&in);
        const struct expectation e = prepare(&in, hook);
        // A throwing form is only called if its other form fails.
        const bool fails = may_throw && i % 2 == 1;
        const bool uses_nothrow = may_throw && is_enabled;
        original_seen = (struct original){.result = e.result};
        nothrow_seen = (struct original){.result = fails ? 0 : e.result};
        call_with_registers(
            &in, &out, (uint64_t)(e.has_result ? original_with_result : original_without_result));
        expect_kept(&in, &out, kind_names[hook]);
        assert_int_equal(out.x[0], e.has_result ? e.result : in.x[0]);
        assert_int_equal(nothrow_seen.calls, uses_nothrow);
        assert_int_equal(original_seen.calls, !uses_nothrow || fails);
        const struct original *seen = original_seen.calls != 0 ? &original_seen : &nothrow_seen;
        assert_memory_equal(seen->arguments, in.x, 6 * sizeof(uint64_t));
        if (is_enabled && e.is_recorded && !fails) {
            expect_one(e.tag, e.or_tag, e.address);
        } else {
            take_all(&g_records);
            assert_int_equal(g_records.count, 0);
        }
    }
    atomic_store(&f.page->enabled, 1);
}

static void each_kind_keeps_registers_and_passes_arguments_and_results(void **state)
{
    (void)state;
    for (int hook = 0; hook < AGENT_HOOK_COUNT; hook++) {
        const enum agent_effect effect = (enum agent_effect)agent_hook_shape(hook).effect;
        const bool has_result = effect != AGENT_FREES && effect != AGENT_CHANGES_MODULES;
        const uint64_t nothrow = effect == AGENT_ALLOCATES_OR_THROWS ? (uint64_t)nothrow_form : 0;
        const uint32_t index =
            patch((uint64_t)(has_result ? original_with_result : original_without_result),
                  (enum agent_hook)hook, f.near, nothrow);
        check_kind((enum agent_hook)hook, true);
        check_kind((enum agent_hook)hook, false);
        unpatch(index);
    }
}

// The first event of the thread, so its stack is sent.
static void a_stack_begins_with_the_call(void **state)
{
    (void)state;
    const uint32_t index = patch((uint64_t)original_with_result, AGENT_MALLOC, f.near, 0);
    static struct registers in;
    static struct registers out;
    draw(&in);
    in.x[0] = 64;
    original_seen = (struct original){.result = drawn_block() | 16};
    call_with_registers(&in, &out, (uint64_t)original_with_result);
    unpatch(index);
    take_all(&g_records);
    size_t found = 0;
    for (size_t i = 0; i < g_records.count; i++) {
        if (has_tag(&g_records.items[i], WIRE_STACK)) {
            assert_int_equal(g_records.items[i].leaf, (uint64_t)return_of_call);
            found++;
        }
    }
    assert_int_equal(found, 1);
}

// The sizes of a thread's blocks tell which call made them.
#define SIZE_OF(call, number) (1000u * (call) + (number))

enum {
    CALL_MALLOC = 1,
    CALL_CALLOC = 2,
    CALL_REALLOC = 3,
    CALL_MEMALIGN = 4,
    NUMBERS = THREADS * BLOCKS,
};
_Static_assert(NUMBERS <= 1000, "sizes of two calls differ");

struct worker {
    pthread_barrier_t *barrier;
    pthread_t thread;
    unsigned first;
    bool is_good;
};

static bool is_filled(const uint8_t *block, size_t len, uint8_t with)
{
    for (size_t i = 0; i < len; i++) {
        if (block[i] != with) {
            return false;
        }
    }
    return true;
}

static bool use_allocator(unsigned number)
{
    uint8_t *block = malloc(SIZE_OF(CALL_MALLOC, number));
    uint8_t *zeros = calloc(1, SIZE_OF(CALL_CALLOC, number));
    void *aligned = NULL;
    bool is_good = block != NULL && zeros != NULL &&
                   posix_memalign(&aligned, 512, SIZE_OF(CALL_MEMALIGN, number)) == 0 &&
                   (uintptr_t)aligned % 512 == 0 &&
                   is_filled(zeros, SIZE_OF(CALL_CALLOC, number), 0);
    if (is_good) {
        memset(block, (int)(number & 0xff), SIZE_OF(CALL_MALLOC, number));
        memset(aligned, 0x55, SIZE_OF(CALL_MEMALIGN, number));
        uint8_t *grown = realloc(block, SIZE_OF(CALL_REALLOC, number));
        is_good = grown != NULL &&
                  is_filled(grown, SIZE_OF(CALL_MALLOC, number), (uint8_t)(number & 0xff));
        block = grown;
    }
    free(block);
    free(zeros);
    free(aligned);
    return is_good;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    (void)pthread_barrier_wait(worker->barrier); // the functions are patched
    worker->is_good = true;
    for (unsigned i = 0; i < BLOCKS; i++) {
        worker->is_good = use_allocator(worker->first + i) && worker->is_good;
    }
    (void)pthread_barrier_wait(worker->barrier);
    (void)pthread_barrier_wait(worker->barrier); // they are as before
    return NULL;
}

// Every call was recorded once, with its size. A realloc is one record, or a free and a block.
static void expect_calls(void)
{
    static unsigned counts[CALL_MEMALIGN + 1][1000];
    size_t frees = 0;
    size_t blocks = 0;
    take_all(&g_records);
    for (size_t i = 0; i < g_records.count; i++) {
        const struct record *record = &g_records.items[i];
        const bool resizes =
            has_tag(record, WIRE_REALLOC) || has_tag(record, WIRE_REALLOC_TEMPORARY);
        frees += resizes || has_tag(record, WIRE_FREE) || has_tag(record, WIRE_FREE_TEMPORARY);
        if (resizes || has_tag(record, WIRE_ALLOC)) {
            const uint64_t size_bytes = record->words[1] & WIRE_SIZE_MAX;
            assert_in_range(size_bytes, SIZE_OF(CALL_MALLOC, 0), SIZE_OF(CALL_MEMALIGN, 999));
            counts[size_bytes / 1000][size_bytes % 1000]++;
            blocks++;
        }
    }
    assert_int_equal(frees, 4 * NUMBERS);
    assert_int_equal(blocks, 4 * NUMBERS);
    for (unsigned call = CALL_MALLOC; call <= CALL_MEMALIGN; call++) {
        for (unsigned number = 0; number < NUMBERS; number++) {
            assert_int_equal(counts[call][number], 1);
        }
    }
}

static void the_allocator_of_libc_is_hooked_and_restored(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum agent_hook hook;
    } functions[] = {
        {"malloc", AGENT_MALLOC},
        {"free", AGENT_FREE},
        {"calloc", AGENT_CALLOC},
        {"realloc", AGENT_REALLOC},
        {"posix_memalign", AGENT_POSIX_MEMALIGN},
    };
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    struct worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.barrier = &barrier, .first = i * BLOCKS};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, workers + i), 0);
    }
    uint64_t addrs[ARRAY_LEN(functions)];
    uint8_t before[ARRAY_LEN(functions)][PATCH_BYTES];
    uint32_t indexes[ARRAY_LEN(functions)];
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        addrs[i] = (uint64_t)dlsym(RTLD_DEFAULT, functions[i].name);
        memcpy(before[i], (const void *)addrs[i], PATCH_BYTES);
    }
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        indexes[i] = patch(addrs[i], functions[i].hook, f.near_libc, 0);
    }
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_barrier_wait(&barrier); // they have worked
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        unpatch(indexes[i]);
        assert_memory_equal((const void *)addrs[i], before[i], PATCH_BYTES);
    }
    (void)pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].is_good);
    }
    expect_calls();
    assert_true(use_allocator(0));
    take_all(&g_records);
    assert_int_equal(g_records.count, 0);
    (void)pthread_barrier_destroy(&barrier);
}

static void an_image_of_another_machine_is_refused(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(f.file.len);
    assert_non_null(bytes);
    memcpy(bytes, f.file.data, f.file.len);
    put_u16(bytes + offsetof(Elf64_Ehdr, e_machine), EM_X86_64);
    struct agent_image image;
    struct err_info info = {0};
    assert_int_equal(agent_image_init(&image, (struct bytes){bytes, f.file.len}, &info),
                     ERR_INVALID);
    assert_string_equal(info.text, "the agent is not a shared object for AArch64");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_begins_with_the_call),
        cmocka_unit_test(each_kind_keeps_registers_and_passes_arguments_and_results),
        cmocka_unit_test(the_allocator_of_libc_is_hooked_and_restored),
        cmocka_unit_test(an_image_of_another_machine_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
