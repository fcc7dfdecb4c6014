// SPDX-License-Identifier: MIT
// static_program: linked statically; the dynamic linker, and so a preload, never sees it.
int main(void)
{
    return 0;
}
