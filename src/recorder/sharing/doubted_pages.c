// SPDX-License-Identifier: MIT
#include "recorder/sharing/doubted_pages.h"

#include "base/minmax.h"

uint64_t shared_bytes_of(const struct rec_rss_sample *sample)
{
    return sample->file_bytes + sample->shmem_bytes;
}

static uint64_t shared_bytes_repeated(const struct rec_rss_sample *sample)
{
    return sample->repeated_file_bytes + sample->repeated_shmem_bytes;
}

uint64_t shared_bytes_counted(const struct rec_rss_sample *sample)
{
    return shared_bytes_of(sample) - shared_bytes_repeated(sample);
}

void doubted_pages_add(struct rec_rss_sample *sample, uint64_t bytes)
{
    const uint64_t doubted_bytes = min_u64(bytes, shared_bytes_counted(sample));
    const uint64_t of_files =
        min_u64(doubted_bytes, sample->file_bytes - sample->repeated_file_bytes);
    sample->repeated_file_bytes += of_files;
    sample->repeated_shmem_bytes += doubted_bytes - of_files;
    sample->doubted_bytes += doubted_bytes;
}

uint64_t doubted_pages_admit(struct rec_rss_sample *samples, size_t count, uint64_t bytes)
{
    uint64_t left = bytes;
    for (size_t i = 0; i < count && left > 0; i++) {
        struct rec_rss_sample *sample = samples + i;
        const uint64_t admitted_bytes = min_u64(left, sample->doubted_bytes);
        const uint64_t of_files = min_u64(admitted_bytes, sample->repeated_file_bytes);
        sample->repeated_file_bytes -= of_files;
        sample->repeated_shmem_bytes -= admitted_bytes - of_files;
        sample->doubted_bytes -= admitted_bytes;
        left -= admitted_bytes;
    }
    return bytes - left;
}

void doubted_pages_limit_next(struct rec_rss_sample *sample, uint64_t *left)
{
    const uint64_t most_bytes = min_u64(*left, shared_bytes_repeated(sample));
    sample->doubted_bytes = min_u64(sample->doubted_bytes, most_bytes);
    *left -= sample->doubted_bytes;
}

void doubted_pages_limit(struct rec_rss_sample *samples, size_t count, uint64_t bytes)
{
    uint64_t left = bytes;
    for (size_t i = 0; i < count; i++) {
        doubted_pages_limit_next(samples + i, &left);
    }
}
