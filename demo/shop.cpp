// SPDX-License-Identifier: MIT
// shop: a web shop's back end in small, for `make demo`. It serves made-up requests on four threads
// for two or three seconds and has the troubles that such programs have:
//
//   session_cache::visit   an unbounded cache: every visitor is kept, none is ever dropped. Its
//                          growth is the peak.
//   spam::mentions         a hot spot of temporary strings: it takes its text by value, so that
//                          each call copies what it only reads.
//   page::render           most allocations: a string for each +, a dozen for every line.
//   payments::charge       a real leak: the receipt of a declined payment is forgotten.
//   nightly_report         library calls that need much memory for a moment: a sort, a regex. It
//                          runs between two days of service, so the leak goes on to the end.
//
// Nothing in it knows of cairn. What it allocates is the same in every run, so that runs can be
// compared.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace
{
constexpr int THREADS = 4;
constexpr int REQUESTS_PER_THREAD = 100000;
constexpr int REQUESTS_OF_FIRST_DAY = 60000; // per thread

struct request {
    std::string visitor;
    int article;
    int cents;
};

struct session {
    std::string visitor;
    std::vector<int> articles;
};

// Keeps every visitor until the end.
class session_cache
{
  public:
    std::size_t visit(const request &request)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        session &found = sessions_[request.visitor];
        if (found.visitor.empty()) {
            found.visitor = request.visitor;
            found.articles.reserve(16);
        }
        if (found.articles.size() < 16) {
            found.articles.push_back(request.article);
        }
        return found.articles.size();
    }

    std::vector<session> copy_all()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::vector<session> all;
        all.reserve(sessions_.size());
        for (const auto &entry : sessions_) {
            all.push_back(entry.second);
        }
        return all;
    }

  private:
    std::mutex mutex_;
    std::unordered_map<std::string, session> sessions_;
};

namespace spam
{
// By value: a copy of the whole text for every word that is looked for.
bool mentions(const std::string text, const char *word)
{
    return text.find(word) != std::string::npos;
}

bool is_suspicious(const std::string &html)
{
    for (const char *word : {"casino", "lottery", "prince", "inherit", "bargain", "pills", "loan",
                             "winner", "crypto", "jackpot"}) {
        if (mentions(html, word)) {
            return true;
        }
    }
    return false;
}
} // namespace spam

namespace page
{
std::string cell(const std::string &text)
{
    return "<td class=\"article\">" + text + "</td>";
}

// Built by adding up: easy to read, and a dozen allocations for every line.
std::string render(const request &request, std::size_t visits)
{
    std::string html = "<html><body><h1>Welcome back, " + request.visitor + "</h1><table>";
    for (int i = 0; i < 6; i++) {
        html += "<tr>" + cell("article number " + std::to_string(request.article + i)) +
                cell("price in cents: " + std::to_string(request.cents)) + "</tr>\n";
    }
    return html + "</table><p>Visit number " + std::to_string(visits) + "</p></body></html>";
}
} // namespace page

namespace payments
{
struct receipt {
    std::string text;
    char signature[96];
};

// Every 500th payment is declined, and on that way out nobody deletes the receipt.
bool charge(const request &request, int number)
{
    auto *paper = new receipt{};
    paper->text = "receipt for " + request.visitor + ", in full";
    if (number % 500 == 499) {
        return false;
    }
    paper->signature[0] = static_cast<char>(number);
    delete paper;
    return true;
}
} // namespace payments

class shop
{
  public:
    shop()
    {
        pthread_barrier_init(&closed_, nullptr, THREADS + 1);
        pthread_barrier_init(&open_, nullptr, THREADS + 1);
    }

    void serve(int thread)
    {
        std::uint32_t random = 12345u + static_cast<std::uint32_t>(thread);
        for (int number = 0; number < REQUESTS_PER_THREAD; number++) {
            if (number == REQUESTS_OF_FIRST_DAY) {
                pthread_barrier_wait(&closed_);
                pthread_barrier_wait(&open_);
            }
            random = random * 1664525u + 1013904223u;
            const request request{"visitor-" + std::to_string(random >> 15) + "@example.org",
                                  static_cast<int>(random >> 8 & 0xffff),
                                  static_cast<int>(random >> 16 & 0xfff)};
            const std::size_t visits = cache_.visit(request);
            const std::string html = page::render(request, visits);
            bytes_sent_ += spam::is_suspicious(html) ? 0 : html.size();
            declined_ += payments::charge(request, number) ? 0 : 1;
        }
    }

    // Waits until every thread has served its first day, makes the report and lets them go on.
    std::size_t close_for_report()
    {
        pthread_barrier_wait(&closed_);
        const std::size_t regulars = nightly_report();
        pthread_barrier_wait(&open_);
        return regulars;
    }

    void print_results(std::size_t regulars) const
    {
        std::printf("served %d requests, %llu bytes, %d payments declined, %zu regulars\n",
                    THREADS * REQUESTS_PER_THREAD,
                    static_cast<unsigned long long>(bytes_sent_.load()), declined_.load(),
                    regulars);
    }

  private:
    // Copies all, sorts the copy and looks through it: much memory for a moment.
    std::size_t nightly_report()
    {
        std::vector<session> all = cache_.copy_all();
        std::stable_sort(all.begin(), all.end(), [](const session &a, const session &b) {
            return a.articles.size() > b.articles.size();
        });
        const std::regex regular("visitor-[0-9]*7@.*");
        const std::size_t looked_at = std::min<std::size_t>(all.size(), 3000);
        return static_cast<std::size_t>(std::count_if(
            all.begin(), all.begin() + static_cast<std::ptrdiff_t>(looked_at),
            [&regular](const session &each) { return std::regex_match(each.visitor, regular); }));
    }

    session_cache cache_;
    pthread_barrier_t closed_;
    pthread_barrier_t open_;
    std::atomic<std::uint64_t> bytes_sent_{0};
    std::atomic<int> declined_{0};
};
} // namespace

int main()
{
    const auto open_shop = std::make_unique<shop>();
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++) {
        threads.emplace_back([&open_shop, i] { open_shop->serve(i); });
    }
    const std::size_t regulars = open_shop->close_for_report();
    for (std::thread &thread : threads) {
        thread.join();
    }
    open_shop->print_results(regulars);
    return 0;
}
