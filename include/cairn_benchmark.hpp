// SPDX-License-Identifier: MIT
/* cairn_benchmark.hpp: a memory manager for GoogleBenchmark, which shows how much each benchmark
 * allocates.
 *
 *   #include <cairn_benchmark.hpp>
 *
 *   int main(int argc, char **argv)
 *   {
 *       cairn::benchmark_memory memory;
 *       benchmark::Initialize(&argc, argv);
 *       benchmark::RunSpecifiedBenchmarks();
 *   }
 *
 * GoogleBenchmark repeats each benchmark some times for this alone, so its times do not change.
 * With --benchmark_format=json it writes for each one, counted for the thread that runs it:
 *
 *   allocs_per_iter        allocations for each iteration
 *   max_bytes_used         the peak of live bytes over all iterations
 *   total_allocated_bytes  bytes allocated in all iterations
 *   net_heap_growth        bytes that remain after all iterations
 *
 * Tried with GoogleBenchmark 1.7.1. Needs C++11. Without a recorder nothing is registered, and the
 * output has none of these figures. */
#ifndef CAIRN_BENCHMARK_HPP
#define CAIRN_BENCHMARK_HPP

/* Versions of GoogleBenchmark differ in the functions that are virtual. */
#ifndef CAIRN_SHOW_WARNINGS
#    pragma GCC system_header
#endif

#include <benchmark/benchmark.h>

#include <cairn.hpp>

#include <cstdint>

namespace cairn
{

/* Registers itself, until it ends. Lives as long as benchmarks run. */
class benchmark_memory final : public benchmark::MemoryManager
{
  public:
    benchmark_memory()
    {
        if (is_recording()) {
            benchmark::RegisterMemoryManager(this);
        }
    }

    benchmark_memory(const benchmark_memory &) = delete;
    benchmark_memory &operator=(const benchmark_memory &) = delete;

    ~benchmark_memory() override
    {
        if (is_recording()) {
            benchmark::RegisterMemoryManager(nullptr);
        }
    }

    void Start() override
    {
        (void)cairn_peak_begin(&peak_);                 /* the end reports a failure */
        (void)cairn_scope_begin(&scope_, CAIRN_THREAD); /* likewise */
    }

    void Stop(Result &result) override
    {
        counts spent;
        std::uint64_t bytes;
        (void)cairn_scope_end(&scope_, &spent); /* zeros if the recorder has died */
        (void)cairn_peak_end(&peak_, &bytes);
        result.num_allocs = static_cast<std::int64_t>(spent.allocations);
        result.max_bytes_used = static_cast<std::int64_t>(bytes);
        result.total_allocated_bytes = static_cast<std::int64_t>(spent.allocated_bytes);
        result.net_heap_growth = spent.live_bytes;
    }

    /* Some versions of GoogleBenchmark require this one too. */
    void Stop(Result *result)
    {
        Stop(*result);
    }

  private:
    cairn_peak peak_;
    cairn_scope scope_;
};

} // namespace cairn

#endif
