// SPDX-License-Identifier: MIT
// part_user: an executable that knows nothing of cairn, linked with a library that does
// (api_part.c). It says whether it is recorded by its exit status. TRUTH: allocations=2 frees=1
// allocated_bytes=110 live_blocks=1 live_bytes=77 temporary=1
int part_work(void);

int main(void)
{
    return part_work() ? 7 : 0;
}
