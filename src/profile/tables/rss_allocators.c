// SPDX-License-Identifier: MIT
#include "profile/tables/rss_allocators.h"

#include "base/order.h"
#include "host/os/file.h"

const char *rss_allocator_name(const struct profile *profile, rec_string module)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->hook_count; i++) {
        const struct rec_hook *hook = &recording->hooks[i];
        if (hook->module == module && hook->allocator != 0) {
            return profile_string(profile, hook->allocator);
        }
    }
    return path_file_name(profile_string(profile, module));
}

static enum err find_allocator(const struct profile *profile,
                               rec_string module,
                               struct rss_allocator_vec *all,
                               size_t *out)
{
    size_t i = 0;
    while (i < all->len && all->items[i].module != module) {
        i++;
    }
    if (i == all->len) {
        TRY(rss_allocator_vec_push(
            all,
            (struct rss_allocator){.module = module, .name = rss_allocator_name(profile, module)}));
    }
    *out = i;
    return ERR_OK;
}

// Whether the recording says whose a part is. Old ones do not.
static bool has_owners(const struct rss_breakdown_split *split)
{
    for (size_t i = 0; i < split->parts.len; i++) {
        if (split->parts.items[i].allocator != 0) {
            return true;
        }
    }
    return false;
}

// Return the module of a part of the heap. In an old recording of a program from its start all is
// of the object that serves malloc.
static rec_string
owner_of(const struct profile *profile, const struct rss_breakdown_part *part, bool has_owners)
{
    const struct rec_process *process = &profile->recording.processes[part->process];
    const bool is_known = !has_owners && (process->flags & REC_PROCESS_ATTACHED) == 0;
    return is_known ? process->allocator : part->allocator;
}

static uint64_t sum_of(const struct rss_allocator *allocator)
{
    return allocator->live_bytes + allocator->rounding_bytes + allocator->kept_bytes +
           allocator->rest_bytes;
}

static int compare_allocators(const void *left, const void *right)
{
    const struct rss_allocator *a = left;
    const struct rss_allocator *b = right;
    return order_u64(sum_of(b), sum_of(a)) ?: order_u64(a->module, b->module);
}

enum err rss_allocators_list(const struct profile *profile,
                             const struct rss_breakdown_split *split,
                             struct rss_allocator_vec *out)
{
    const bool is_said = has_owners(split);
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        if (part->rss_bytes == 0 || (!rss_breakdown_is_heap(part->kind) && part->allocator == 0)) {
            continue;
        }
        size_t index;
        TRY(find_allocator(profile, owner_of(profile, part, is_said), out, &index));
        struct rss_allocator *sum = out->items + index;
        uint64_t *const figure = part->kind == REC_PART_LIVE       ? &sum->live_bytes
                                 : part->kind == REC_PART_ROUNDING ? &sum->rounding_bytes
                                 : part->kind == REC_PART_KEPT     ? &sum->kept_bytes
                                                                   : &sum->rest_bytes;
        *figure += part->rss_bytes;
        sum->released_bytes += part->released_bytes;
        const bool is_unnamed = profile_string(profile, part->path)[0] == '\0';
        sum->areas += part->kind == REC_PART_KEPT && is_unnamed ? part->areas : 0;
    }
    rss_allocator_vec_sort(out, compare_allocators);
    return ERR_OK;
}
