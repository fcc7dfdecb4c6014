// SPDX-License-Identifier: MIT
// Templates, lambdas, local classes, anonymous and nested namespaces, exceptions: the scopes in
// which C++ functions lie. Truth: the call of operator new in depot::shelf::Crate<int>::fill is at
// the line marked [allocate].
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define OWN __attribute__((noinline))

namespace depot::shelf
{
template <typename T> class Crate
{
  public:
    OWN void fill(std::size_t count)
    {
        items_ = new T[count + 1]; // [allocate]
        __asm__ volatile("" : : "r"(items_) : "memory");
    }
    ~Crate()
    {
        delete[] items_;
    }

  private:
    T *items_ = nullptr;
};
} // namespace depot::shelf

namespace
{
struct Hidden {
    OWN static std::string name(int number)
    {
        return "a name that is too long for the small buffer " + std::to_string(number);
    }
};
} // namespace

OWN static int guarded(int number)
{
    struct Local {
        OWN int twice(int value) const
        {
            return value * 2 + static_cast<int>(Hidden::name(value).size());
        }
    };
    try {
        if (number > 1000) {
            throw std::runtime_error(Hidden::name(number));
        }
        return Local().twice(number);
    } catch (const std::exception &problem) {
        std::puts(problem.what());
        return 0;
    }
}

int main(int argc, char **)
{
    depot::shelf::Crate<int> crate;
    crate.fill(static_cast<std::size_t>(argc));
    std::map<int, std::vector<std::string>> names;
    std::function<int(int)> add = [&names](int number) OWN {
        names[number % 7].push_back(Hidden::name(number));
        return guarded(number);
    };
    int sum = 0;
    for (int i = 0; i < 10 * argc; i++) {
        sum += add(i);
    }
    std::printf("%d\n", sum);
    return 0;
}
