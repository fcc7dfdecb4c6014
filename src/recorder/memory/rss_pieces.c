// SPDX-License-Identifier: MIT
#include "recorder/memory/rss_pieces.h"

#include <string.h>

#include "base/minmax.h"
#include "base/search.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"

// The kernel's names of cairn's memory.
#define SESSION_NAME "/memfd:cairn-session"
#define LIBRARY_NAME "/libcairn_preload.so"

enum {
    ARENA_BYTES = 64 << 20,    // HEAP_MAX_SIZE of glibc on 64-bit machines
    STACK_BYTES_MAX = 8 << 20, // default of a thread's stack
    PAUSE_AREAS = 1024,
    FREE_HEAD = 48,      // of a free chunk: what malloc_trim keeps of it
    HEAP_ENDS = 1 << 20, // a heap that is so much smaller than it may be has its arena's top
    CHANGED_DIVISOR = 8, // of what an allocator keeps: after a larger change it is another amount
};

// The state of cutting one area.
struct cutting {
    const struct rss_process *what;
    const struct memory_areas *map;
    size_t area; // index
    struct rss_piece_vec *out;
};

void foreign_heap_release(struct foreign_heap *heap)
{
    heap_claim_vec_release(&heap->claims);
    address_range_vec_release(&heap->free);
    u64_vec_release(&heap->tops);
}

// Return the first top in a range; its end if there is none.
static uint64_t top_in(const struct foreign_heap *heap, struct address_range range)
{
    const struct u64_vec *tops = &heap->tops;
    const size_t first = FIRST_WHERE(at, tops->len, tops->items[at] >= range.start);
    return first < tops->len ? min_u64(tops->items[first], range.end) : range.end;
}

bool foreign_heap_is_top(const struct foreign_heap *heap, struct address_range range)
{
    return top_in(heap, range) < range.end;
}

struct address_range foreign_heap_whole_pages(struct address_range range)
{
    const uint64_t start = page_end(range.start + FREE_HEAD);
    const uint64_t end = page_start(range.end);
    return (struct address_range){.start = start, .end = max_u64(start, end)};
}

// Whether a piece is the heap of an arena for threads.
static bool is_arena_heap(const struct rss_piece *piece)
{
    return piece->rule == RELEASE_GLIBC && piece->path[0] == '\0' &&
           piece->start % GLIBC_HEAP_BYTES == 0 && piece->end - piece->start <= GLIBC_HEAP_BYTES;
}

// Where glibc did not say: the top is in the newest heap, and older ones mostly have their full
// size.
uint64_t rss_piece_top(const struct rss_process *what, const struct rss_piece *piece)
{
    if (!is_arena_heap(piece)) {
        return piece->end;
    }
    if (what->foreign != NULL && what->foreign->knows_tops) {
        return top_in(what->foreign,
                      (struct address_range){.start = piece->start, .end = piece->end});
    }
    return piece->end - piece->start <= GLIBC_HEAP_BYTES - HEAP_ENDS ? piece->start : piece->end;
}

// Whether the allocator of `module` may have a piece, or more of it.
static bool may_have(const struct rss_piece *piece, rec_string module)
{
    const bool is_break = strcmp(piece->path, "[heap]") == 0;
    const bool is_unnamed = piece->path[0] == '\0';
    const bool is_own = piece->kind == REC_PART_KEPT &&
                        (piece->allocator == module || piece->allocator == 0) &&
                        (piece->claim == HEAP_CLAIM_NONE || is_break);
    return is_own || (piece->kind == REC_PART_REST && piece->is_earlier && is_unnamed);
}

static uint64_t room_of(const struct rss_piece *piece, rec_string module)
{
    return may_have(piece, module)
               ? excess_u64(piece->rss_bytes, piece->occupied_bytes + piece->free_bytes)
               : 0;
}

// Whether what an allocator said is still so.
static bool does_hold(const struct rss_process *what,
                      const struct process_allocator *allocator,
                      const struct rss_piece_vec *pieces)
{
    uint64_t rss_bytes = 0;
    for (size_t i = 0; i < pieces->len; i++) {
        rss_bytes += pieces->items[i].kind != REC_PART_OWN ? pieces->items[i].rss_bytes : 0;
    }
    const uint64_t much_bytes = allocator->kept_bytes / CHANGED_DIVISOR;
    return allocator->kept_bytes > 0 && what->process->live_bytes <= much_bytes &&
           distance_u64(rss_bytes, allocator->rss_bytes) <= much_bytes;
}

static void share_answer(const struct process_allocator *allocator, struct rss_piece_vec *pieces)
{
    uint64_t rooms_bytes = 0;
    for (size_t i = 0; i < pieces->len; i++) {
        rooms_bytes += room_of(pieces->items + i, allocator->module);
    }
    const uint64_t kept_bytes = min_u64(allocator->kept_bytes, rooms_bytes);
    const uint64_t released_bytes = min_u64(allocator->released_bytes, kept_bytes);
    for (size_t i = 0; i < pieces->len; i++) {
        struct rss_piece *piece = pieces->items + i;
        const uint64_t room_bytes = room_of(piece, allocator->module);
        if (room_bytes > 0) {
            piece->free_bytes += share_u64(kept_bytes, room_bytes, rooms_bytes);
            piece->released_bytes += share_u64(released_bytes, room_bytes, rooms_bytes);
            piece->is_asked = piece->kind != REC_PART_KEPT;
            piece->kind = REC_PART_KEPT;
            piece->allocator = allocator->module;
        }
    }
}

bool rss_pieces_share_answers(const struct rss_process *what, struct rss_piece_vec *pieces)
{
    const struct process_allocator_vec *allocators = &what->process->allocators;
    bool is_any = false;
    for (size_t i = 0; i < allocators->len && !what->is_heap_known; i++) {
        if (does_hold(what, allocators->items + i, pieces)) {
            share_answer(allocators->items + i, pieces);
            is_any = true;
        }
    }
    return is_any;
}

static const struct memory_area *area_of(const struct cutting *c, size_t index)
{
    return c->map->areas.items + index;
}

static const char *path_of(const struct cutting *c, size_t index)
{
    return memory_area_path(c->map, area_of(c, index));
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_own(const char *path)
{
    const char *name = strrchr(path, '/');
    return starts_with(path, SESSION_NAME) || (name != NULL && starts_with(name, LIBRARY_NAME));
}

static uint32_t kind_of_file(const char *path, bool is_shared)
{
    static const char *const shared[] = {"/dev/shm/", "/SYSV", "/memfd:"};
    if (is_own(path)) {
        return REC_PART_OWN;
    }
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        if (starts_with(path, shared[i])) {
            return REC_PART_SHARED;
        }
    }
    return is_shared && starts_with(path, "/dev/zero") ? REC_PART_SHARED : REC_PART_FILE;
}

// Return the range of the program's or an allocator's own mappings that holds `address`, or NULL.
static const struct mapped_range *range_at(const struct cutting *c, uint64_t address)
{
    const struct mapped_range *range = mapping_map_at(&c->what->process->mapped, address);
    return range != NULL && range->start <= address && range->row != REC_NONE ? range : NULL;
}

static uint32_t node_at(const struct cutting *c, uint64_t address)
{
    const struct mapped_range *range = range_at(c, address);
    return range != NULL && !mapped_range_is_heap(range)
               ? c->what->aggregator->mappings.items[range->row].node
               : REC_NONE;
}

// Return the path of the module that made the call of `node`; 0: unknown.
static rec_string module_of(const struct rss_process *what, uint32_t node)
{
    const struct stack_table *stacks = &what->aggregator->stacks;
    const uint32_t frame = stacks->nodes.items[node].frame;
    const uint32_t module = frame != REC_NONE ? stacks->frames.items[frame].module : REC_NONE;
    return module != REC_NONE ? stacks->modules.items[module].path : 0;
}

// Return whether the allocator itself made the call of `node`, as jemalloc does. An executable that
// has its own allocator maps for other reasons, too.
static bool is_allocators(const struct cutting *c, uint32_t node)
{
    const struct rec_process *process = &c->what->process->record;
    const rec_string path = module_of(c->what, node);
    return path != 0 && path == process->allocator && path != process->executable;
}

// Whether two paths may be of one library: a program loads it by a name that is a link to the other
// one, "libx.so.2" and "libx.so.2.0".
static bool is_same_library(const char *a, const char *b)
{
    a = path_file_name(a);
    b = path_file_name(b);
    const size_t length = min_u64(strlen(a), strlen(b));
    return length > 0 && strncmp(a, b, length) == 0 && (a[length] == '\0' || a[length] == '.') &&
           (b[length] == '\0' || b[length] == '.');
}

// Return the module of an allocator as its hooks name it.
static rec_string as_hooked(const struct rss_process *what, rec_string module)
{
    const struct string_table *strings = &what->aggregator->strings;
    const struct process_allocator_vec *others = &what->process->allocators;
    for (size_t i = 0; module != 0 && i < others->len; i++) {
        if (is_same_library(string_table_get(strings, others->items[i].module),
                            string_table_get(strings, module))) {
            return others->items[i].module;
        }
    }
    return module;
}

// Return the module of the allocator that has mapped a range of its own.
static rec_string mapper_of(const struct cutting *c, const struct mapped_range *range)
{
    const struct rec_module *modules = c->what->aggregator->stacks.modules.items;
    return range->row != MAPPING_ROW_HEAP
               ? as_hooked(c->what, modules[range->row - MAPPING_ROW_HEAPS].path)
               : 0;
}

// Whether an allocator besides libc's may have moved the break: tcmalloc does, and one without a
// name may. Then not all of [heap] is glibc's.
static bool is_break_shared(const struct rss_process *what)
{
    static const char *const mapping_only[] = {"jemalloc", "mimalloc", "snmalloc", "tbb"};
    const struct process_allocator_vec *others = &what->process->allocators;
    size_t known = 0;
    for (size_t i = 0; i < others->len; i++) {
        const char *name = string_table_get(&what->aggregator->strings, others->items[i].name);
        for (size_t k = 0; k < ARRAY_LEN(mapping_only); k++) {
            known += strcmp(name, mapping_only[k]) == 0;
        }
    }
    return known < others->len;
}

rec_string
rss_pieces_allocator(const struct rss_process *what, const struct rss_piece *piece, uint32_t node)
{
    const struct aggregator_process *process = what->process;
    const struct process_allocator_vec *others = &process->allocators;
    const rec_string mapper = node != REC_NONE ? as_hooked(what, module_of(what, node)) : 0;
    if (!process->has_agent) {
        return process->record.allocator; // all recorded blocks are of this one
    }
    if (others->len == 0) {
        return what->libc;
    }
    for (size_t i = 0; i < others->len; i++) {
        if (others->items[i].module == mapper) {
            return mapper;
        }
    }
    if (node != REC_NONE || piece->claim != HEAP_CLAIM_NONE) {
        return 0;
    }
    if (process->is_late) { // glibc would have claimed it
        const bool is_read = what->foreign != NULL && what->foreign->is_read;
        return is_read && others->len == 1 ? others->items[0].module : 0;
    }
    return piece->apart_count == piece->live_count ? what->libc : 0;
}

static bool is_own_note(const struct cutting *c, uint64_t address)
{
    for (size_t i = 0; i < c->what->own->len; i++) {
        const struct address_range *own = c->what->own->items + i;
        if (own->start <= address && address < own->end) {
            return true;
        }
    }
    return false;
}

// Return the first end of a known stack after `address`; UINT64_MAX: none.
static uint64_t stack_top_after(const struct cutting *c, uint64_t address)
{
    const struct u64_vec *tops = c->what->stack_tops;
    const size_t first = FIRST_WHERE(at, tops->len, tops->items[at] > address);
    return first < tops->len ? tops->items[first] : UINT64_MAX;
}

// Return whether a known thread's stack fills the area from its start to above `address`.
static bool is_known_stack(const struct cutting *c, uint64_t address)
{
    return stack_top_after(c, address) <= area_of(c, c->area)->end;
}

// Return the first claim of an allocator that ends behind `address`, or NULL.
static const struct heap_claim *claim_behind(const struct cutting *c, uint64_t address)
{
    const struct foreign_heap *foreign = c->what->foreign;
    const size_t count = foreign != NULL ? foreign->claims.len : 0;
    const size_t first = FIRST_WHERE(at, count, foreign->claims.items[at].range.end > address);
    return first < count ? foreign->claims.items + first : NULL;
}

// Return the next start or end of memory from before an attach behind `address`, and whether the
// memory at `address` is.
static uint64_t earlier_boundary(const struct cutting *c, uint64_t address, bool *out_is_earlier)
{
    const struct u64_vec *bounds = &c->what->process->earlier_ranges; // starts and ends
    const size_t next = FIRST_WHERE(at, bounds->len, bounds->items[at] > address);
    *out_is_earlier = next % 2 != 0;
    return next < bounds->len ? bounds->items[next] : UINT64_MAX;
}

static enum heap_claim_kind claim_at(const struct cutting *c, uint64_t address)
{
    const struct heap_claim *claim = claim_behind(c, address);
    return claim != NULL && claim->range.start <= address ? claim->kind : HEAP_CLAIM_NONE;
}

static bool is_behind(const struct cutting *c, uint64_t address)
{
    return c->area > 0 && area_of(c, c->area - 1)->end == address;
}

// Return whether a piece at the start of its area is the stack of a thread: a guard is before it,
// it is not larger than a stack, and a thread uses it.
static bool is_used_stack(const struct cutting *c, const struct rss_piece *piece)
{
    const struct u64_vec *pointers = c->what->stack_pointers;
    const size_t first = FIRST_WHERE(at, pointers->len, pointers->items[at] >= piece->start);
    return first < pointers->len && pointers->items[first] < piece->end &&
           memory_areas_is_guarded(c->map, c->area) && piece->end - piece->start <= STACK_BYTES_MAX;
}

// Classify memory without a claim.
static void judge_shape(const struct cutting *c, struct rss_piece *piece)
{
    const struct memory_area *area = area_of(c, c->area);
    const bool is_first = piece->start == area->start;
    piece->kind = REC_PART_REST;
    const bool is_arena = piece->path[0] == '\0' && piece->start % ARENA_BYTES == 0 &&
                          piece->end - piece->start <= ARENA_BYTES;
    if (is_arena || strcmp(piece->path, "[heap]") == 0) {
        piece->kind = REC_PART_KEPT;
        piece->allocator = c->what->process->is_late ? 0 : c->what->libc;
    } else if (starts_with(piece->path, "[stack")) {
        piece->kind = REC_PART_STACK;
    } else if (starts_with(piece->path, "[v")) { // vdso, vvar, vsyscall: the kernel's code and data
        piece->kind = REC_PART_FILE;
    } else if (is_first && is_behind(c, area->start) && piece->path[0] == '\0') {
        const char *before = path_of(c, c->area - 1);
        if (before[0] == '/' && piece->start < area->bss_end) {
            piece->kind = kind_of_file(before, false);
            piece->path = before;
        } else if (is_used_stack(c, piece)) {
            piece->kind = REC_PART_STACK;
        }
    }
}

static void judge(const struct cutting *c, struct rss_piece *piece)
{
    const struct memory_area *area = area_of(c, c->area);
    const struct mapped_range *range = range_at(c, piece->start);
    piece->node = REC_NONE;
    if (is_own_note(c, piece->start)) {
        piece->kind = REC_PART_OWN;
    } else if (range != NULL && mapped_range_is_heap(range)) {
        piece->kind = REC_PART_KEPT;
        piece->allocator = mapper_of(c, range);
    } else if (range != NULL) {
        piece->node = c->what->aggregator->mappings.items[range->row].node;
        piece->kind = is_allocators(c, piece->node) ? REC_PART_KEPT : REC_PART_MAPPED;
        piece->allocator = piece->kind == REC_PART_KEPT ? module_of(c->what, piece->node) : 0;
    } else if (area->is_accessible && is_known_stack(c, piece->start)) {
        piece->kind = REC_PART_STACK;
    } else if (claim_at(c, piece->start) != HEAP_CLAIM_NONE) {
        piece->kind = REC_PART_KEPT;
        piece->claim = claim_at(c, piece->start);
        const bool is_break = strcmp(piece->path, "[heap]") == 0;
        piece->allocator = is_break && is_break_shared(c->what) ? 0 : c->what->libc;
    } else {
        judge_shape(c, piece);
        (void)earlier_boundary(c, piece->start, &piece->is_earlier); // only whether
    }
}

static uint64_t nearer(uint64_t boundary, uint64_t address, uint64_t nearest)
{
    return boundary > address && boundary < nearest ? boundary : nearest;
}

// Return the next start or end of a claim after `address`.
static uint64_t next_boundary(const struct cutting *c, uint64_t address)
{
    uint64_t next = nearer(area_of(c, c->area)->bss_end, address, area_of(c, c->area)->end);
    const struct mapped_range *range = mapping_map_at(&c->what->process->mapped, address);
    if (range != NULL) {
        next = nearer(range->start, address, next);
        next = nearer(range->end, address, next);
    }
    bool is_earlier;
    next = nearer(earlier_boundary(c, address, &is_earlier), address, next);
    const struct heap_claim *claim = claim_behind(c, address);
    if (claim != NULL) {
        next = nearer(claim->range.start, address, next);
        next = nearer(claim->range.end, address, next);
    }
    for (size_t i = 0; i < c->what->own->len; i++) {
        next = nearer(c->what->own->items[i].start, address, next);
        next = nearer(c->what->own->items[i].end, address, next);
    }
    return nearer(stack_top_after(c, address), address, next);
}

static bool goes_on(const struct rss_piece *last, const struct rss_piece *piece)
{
    return last->area == piece->area && last->end == piece->start && last->kind == piece->kind &&
           last->node == piece->node && last->path == piece->path && last->claim == piece->claim &&
           last->allocator == piece->allocator && last->is_earlier == piece->is_earlier;
}

static enum err push(struct cutting *c, const struct rss_piece *piece)
{
    struct rss_piece *last = c->out->len > 0 ? c->out->items + c->out->len - 1 : NULL;
    if (last != NULL && goes_on(last, piece)) {
        last->end = piece->end;
        return ERR_OK;
    }
    return rss_piece_vec_push(c->out, *piece);
}

static enum err cut_anonymous(struct cutting *c)
{
    const struct memory_area *area = area_of(c, c->area);
    for (uint64_t at = area->start; at < area->end;) {
        struct rss_piece piece = {
            .start = at, .end = next_boundary(c, at), .area = c->area, .path = path_of(c, c->area)};
        judge(c, &piece);
        TRY(push(c, &piece));
        at = piece.end;
    }
    return ERR_OK;
}

enum err rss_pieces_cut(const struct rss_process *what,
                        const struct memory_areas *map,
                        struct rss_piece_vec *out)
{
    struct cutting c = {.what = what, .map = map, .out = out};
    for (; c.area < map->areas.len; c.area++) {
        if (c.area % PAUSE_AREAS == PAUSE_AREAS - 1 && what->pause != NULL) {
            (void)what->pause(what->context); // no block is visited
        }
        const struct memory_area *area = area_of(&c, c.area);
        const char *path = path_of(&c, c.area);
        if (path[0] != '/') {
            TRY(cut_anonymous(&c));
            continue;
        }
        const struct rss_piece piece = {.start = area->start,
                                        .end = area->end,
                                        .area = c.area,
                                        .path = path,
                                        .kind = kind_of_file(path, area->is_shared),
                                        .node = node_at(&c, area->start)};
        TRY(rss_piece_vec_push(out, piece));
    }
    return ERR_OK;
}
