// SPDX-License-Identifier: MIT
// static_program: linked statically, so that the dynamic linker and a preload never run.
int main(void)
{
    return 0;
}
