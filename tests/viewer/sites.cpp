// SPDX-License-Identifier: MIT
// sites: all blocks come from operator new. The costliest line is neither the first nor the last.
void few();
void many();
static char *volatile sink;

int main()
{
    few();
    many();
    few();
}

[[gnu::noinline]] void many()
{
    for (int i = 0; i < 100; i++) {
        sink = new char[1000];
    }
}

[[gnu::noinline]] void few()
{
    sink = new char[7];
}
