// SPDX-License-Identifier: MIT
// view_blocks: the blocks that were live at the end, and at the peak.
#include "base/compiler.h"
#include "profile/tables/block_table.h"
#include "views_json/views/views.h"

struct block_row {
    struct rec_block block;
    uint64_t age_ms;
    uint64_t freed_ms; // VALUE_UNKNOWN: never
    uint32_t pid;
    uint32_t thread_id;
    rec_string thread;
    uint32_t stack; // equal for blocks of one call stack
    struct place place;
};

DEFINE_VEC(block_row_vec, struct block_row);

static const struct column block_columns[] = {
    COLUMN_AS("address", CELL_U64, block_row, block.address),
    COLUMN_AS("size_bytes", CELL_U64, block_row, block.size_bytes),
    COLUMN_AS("born_ms", CELL_U64, block_row, block.born_ms),
    COLUMN(CELL_U64, block_row, age_ms),
    COLUMN(CELL_OPTIONAL, block_row, freed_ms),
    COLUMN(CELL_U32, block_row, pid),
    COLUMN(CELL_U32, block_row, thread_id),
    COLUMN(CELL_STRING, block_row, thread),
    COLUMN(CELL_U32, block_row, stack),
    COLUMN(CELL_LOCATION, block_row, place),
};

static struct block_row row_of(const struct selection *selection, uint32_t index, uint32_t flag)
{
    const struct profile *profile = selection->profile;
    const struct recording *recording = &profile->recording;
    const struct rec_block *block = &recording->blocks[index];
    const struct rec_row *row = &recording->rows[block->row];
    const struct rec_thread *thread = &recording->threads[row->thread];
    bool is_live = (block->flags & REC_BLOCK_END) != 0;
    return (struct block_row){
        .block = *block,
        .age_ms = block_age_ms(profile, index, flag),
        .freed_ms = is_live ? VALUE_UNKNOWN : block->freed_ms,
        .pid = recording->processes[thread->process].pid,
        .thread_id = thread->thread_id,
        .thread = thread->name,
        .stack = row->node,
        .place = {SIDE_NEW, selection_call_site(selection, row->node).location},
    };
}

static MUST_USE enum err write_blocks(struct view *view,
                                      const char *key,
                                      uint32_t flag,
                                      const struct blocks_options *options)
{
    CLEANUP(block_table_release) struct block_table blocks = {0};
    CLEANUP(block_row_vec_release) struct block_row_vec rows = {0};
    if (options->lists_blocks) {
        TRY(block_table_build(view->selection, view->filter, flag, &blocks, NULL));
    }
    for (size_t i = 0; i < blocks.blocks.len && (options->limit == 0 || i < options->limit); i++) {
        TRY(block_row_vec_push(&rows, row_of(view->selection, blocks.blocks.items[i], flag)));
    }
    view_table(view, &TABLE(key, block_columns, rows.items, rows.len));
    return ERR_OK;
}

enum err view_blocks(struct view *view, const struct blocks_options *options)
{
    TRY(write_blocks(view, "end", REC_BLOCK_END, options));
    return write_blocks(view, "peak", REC_BLOCK_PEAK, options);
}
