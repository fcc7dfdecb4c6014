// SPDX-License-Identifier: MIT
// compile: input for cc1plus: much of the standard library, and templates that instantiate it. It
// is never run. COPIES of each group make the compiler's work long enough to measure (3 and -O2:
// over 2.6 million allocations by GCC 12). The types differ between copies, so that the compiler
// instantiates each copy anew.

#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <deque>
#include <functional>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#ifndef COPIES
#    define COPIES 2
#endif

namespace
{

template <std::size_t N> struct key {
    std::string name;
    std::array<int, N + 1> parts;

    bool operator<(const key &other) const
    {
        return std::tie(name, parts) < std::tie(other.name, other.parts);
    }
    bool operator==(const key &other) const
    {
        return name == other.name && parts == other.parts;
    }
};

template <std::size_t N> struct key_hash {
    std::size_t operator()(const key<N> &k) const
    {
        return std::accumulate(k.parts.begin(), k.parts.end(), std::hash<std::string>{}(k.name));
    }
};

template <std::size_t N> struct containers {
    std::map<key<N>, std::vector<key<N>>> sorted;
    std::unordered_map<key<N>, std::deque<key<N>>, key_hash<N>> hashed;
    std::multimap<std::string, key<N>> many;
    std::set<key<N>, std::greater<>> distinct;
    std::list<std::pair<key<N>, std::unique_ptr<key<N>>>> owned;
    std::priority_queue<std::pair<int, key<N>>> queue;

    std::size_t fill(const std::vector<std::string> &words)
    {
        for (const auto &word : words) {
            key<N> k{word, {}};
            sorted[k].push_back(k);
            hashed[k].emplace_front(k);
            many.emplace(word, k);
            owned.emplace_back(k, std::make_unique<key<N>>(k));
            queue.emplace(static_cast<int>(word.size()), k);
        }
        return sorted.size() + hashed.size() + many.size() + distinct.size() + owned.size();
    }
};

template <std::size_t N> std::string describe(const std::vector<std::string> &words)
{
    std::ostringstream out;
    std::vector<std::variant<int, std::string, key<N>, std::shared_ptr<key<N>>>> values;
    for (const auto &word : words) {
        if (std::string_view(word).size() > N) {
            values.emplace_back(word);
        } else {
            values.emplace_back(std::make_shared<key<N>>(key<N>{word, {}}));
        }
    }
    for (const auto &value : values) {
        std::visit(
            [&out](const auto &v) {
                if constexpr (std::is_same_v<std::decay_t<decltype(v)>, key<N>>) {
                    out << std::setw(N + 4) << v.name;
                } else if constexpr (std::is_convertible_v<decltype(v), std::string>) {
                    out << v;
                }
            },
            value);
    }
    return out.str();
}

template <std::size_t N> double compute(std::vector<double> numbers)
{
    std::mt19937_64 engine(N);
    std::normal_distribution<double> noise(0.0, 1.0 + N);
    std::transform(numbers.begin(), numbers.end(), numbers.begin(),
                   [&](double x) { return std::abs(std::complex<double>(x, noise(engine))); });
    std::stable_sort(numbers.begin(), numbers.end(),
                     [](double a, double b) { return a + N < b + N; });
    auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    std::nth_element(numbers.begin(), middle, numbers.end());
    std::function<double(double)> step = [n = static_cast<double>(N)](double x) { return x + n; };
    return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                           [&](double sum, double x) { return sum + step(x); });
}

template <std::size_t... N>
std::size_t use_all(const std::vector<std::string> &words, std::index_sequence<N...>)
{
    return (... + (containers<N>{}.fill(words) + describe<N>(words).size() +
                   static_cast<std::size_t>(compute<N>({1.0, 2.0}))));
}

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv, argv + argc);
    std::cout << use_all(words, std::make_index_sequence<COPIES>{}) << '\n';
    return 0;
}
