// SPDX-License-Identifier: MIT
#include "recorder/lanes/lane_heap.h"

#include "base/minmax.h"

static bool precedes(struct lane_turn a, struct lane_turn b)
{
    return a.stamp != b.stamp ? a.stamp < b.stamp : a.is_earlier && !b.is_earlier;
}

// Put `turn` where `at` is, or below it, and lift what precedes it.
static void sink(struct lane_heap *heap, uint32_t at, struct lane_turn turn)
{
    for (uint32_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count && precedes(heap->turns[child + 1], heap->turns[child])) {
            child++;
        }
        if (!precedes(heap->turns[child], turn)) {
            break;
        }
        heap->turns[at] = heap->turns[child];
    }
    heap->turns[at] = turn;
}

void lane_heap_clear(struct lane_heap *heap)
{
    heap->count = 0;
}

void lane_heap_add(struct lane_heap *heap, struct lane_turn turn)
{
    uint32_t at = heap->count++;
    while (at > 0 && precedes(turn, heap->turns[(at - 1) / 2])) {
        heap->turns[at] = heap->turns[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->turns[at] = turn;
}

void lane_heap_move_first(struct lane_heap *heap, uint64_t stamp)
{
    struct lane_turn turn = heap->turns[0];
    turn.stamp = stamp;
    sink(heap, 0, turn);
}

void lane_heap_drop_first(struct lane_heap *heap)
{
    heap->count--;
    if (heap->count > 0) {
        sink(heap, 0, heap->turns[heap->count]);
    }
}

uint64_t lane_heap_second_stamp(const struct lane_heap *heap)
{
    const uint64_t left = heap->count > 1 ? heap->turns[1].stamp : UINT64_MAX;
    const uint64_t right = heap->count > 2 ? heap->turns[2].stamp : UINT64_MAX;
    return min_u64(left, right);
}
