// SPDX-License-Identifier: MIT
// arena: a std::pmr resource over memory from mmap, whose blocks cairn sees one by one, under the
// name "arena".
//
//   c++ -std=c++17 -I/usr/include examples/arena.cpp -o arena && cairn ./arena
//
// TRUTH: allocations=2 frees=1 allocated_bytes=300 freed_bytes=100 live_bytes=200
// live_blocks=1 TRUTH: peak_bytes=300
#include <cairn.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory_resource>

class Arena final : public std::pmr::memory_resource
{
  public:
    explicit Arena(std::size_t bytes)
        : begin_(static_cast<std::byte *>(
              mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        used_ = (used_ + alignment - 1) / alignment * alignment;
        void *block = begin_ + used_;
        used_ += bytes;
        cairn_pool_alloc("arena", block, bytes);
        return block;
    }

    void do_deallocate(void *block, std::size_t, std::size_t) override
    {
        cairn_report_free(block);
    }

    bool do_is_equal(const memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    std::byte *begin_;
    std::size_t used_ = 0;
};

int main()
{
    Arena arena(1 << 20);
    std::pmr::memory_resource &resource = arena;
    cairn_peak peak;
    cairn_peak_begin(&peak);
    void *first = resource.allocate(100, 1);
    void *second = resource.allocate(200, 1); // stays
    cairn_mark("two blocks");
    resource.deallocate(first, 100, 1);
    std::uint64_t bytes;
    if (cairn_peak_end(&peak, &bytes) != 0 && bytes != 300) {
        return 1;
    }
    return second == nullptr;
}
