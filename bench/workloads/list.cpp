// SPDX-License-Identifier: MIT
// list: std::list as a queue, one element in, one out, from three frames of stack.
//
// The easy case that others publish: shallow, one stack, short-lived blocks of one size. `length`
// elements are alive at a time. A pair is one push_back and one pop_front. `beside` makes the heap
// as large as a real program's: what threads need not add to the sum of the peak is a part of it.

#include "workload.h"

#include <list>
#include <vector>

namespace
{

struct plan {
    uint64_t pairs = 20000000;
    uint64_t threads = 1;
    uint64_t length = 16;
    uint64_t beside_bytes = 0;
};

__attribute__((noinline)) uint64_t push_and_pop(uint64_t pairs, uint64_t length)
{
    std::list<uint64_t> queue(length, 1);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        queue.push_back(i);
        sum += queue.front();
        queue.pop_front();
    }
    return sum;
}

void run_one(void *arg, uint32_t)
{
    const auto *settings = static_cast<const plan *>(arg);
    uint64_t sum = push_and_pop(settings->pairs, settings->length);
    workload_keep(&sum);
}

} // namespace

int main(int argc, char **argv)
{
    plan settings;
    const workload_param params[] = {
        {"pairs", &settings.pairs, 1, UINT64_MAX / 2, "push and pop pairs of each thread"},
        {"threads", &settings.threads, 0, 4096, "threads; 0: one, beside one that sleeps"},
        {"length", &settings.length, 1, 1u << 30, "elements alive at a time"},
        {"beside", &settings.beside_bytes, 0, 1u << 30, "bytes of another block that is alive"},
        {},
    };
    workload_args(argc, argv, params);
    std::vector<char> beside(settings.beside_bytes);
    workload_keep(&beside);
    uint64_t loop_ns =
        workload_run_threads(static_cast<uint32_t>(settings.threads), run_one, &settings);
    const workload_figure figures[] = {{"threads", settings.threads}, {nullptr, 0}};
    workload_report("list", settings.pairs, loop_ns, figures);
    return 0;
}
