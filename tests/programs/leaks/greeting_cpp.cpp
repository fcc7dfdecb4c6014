// SPDX-License-Identifier: MIT
// greeting_cpp: does what most C++ programs do and leaves only libstdc++'s own blocks: prints, uses
// buffers of its own, throws, and starts a thread. With the word "block" it leaks 777 bytes.
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <thread>

static char *volatile kept;

int main(int argc, char **argv)
{
    std::ios_base::sync_with_stdio(false);
    try {
        throw std::runtime_error("hello");
    } catch (const std::exception &error) {
        std::cout << error.what() << '\n';
    }
    std::thread([] { std::cout << "from a thread\n"; }).join();
    if (argc > 1 && std::strcmp(argv[1], "block") == 0) {
        kept = new char[777];
        kept = nullptr;
    }
    return 0;
}
