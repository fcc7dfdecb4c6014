// SPDX-License-Identifier: MIT
#include "views_json/layout/view_cell.h"

#include "profile/accuracy/sampling.h"

// The recording of one side; NULL if the view has none.
static const struct recording *recording_of(const struct view *view, enum side side)
{
    if (side == SIDE_OLD) {
        return view->old_selection != NULL ? &view->old_selection->profile->recording : NULL;
    }
    return view->profile != NULL ? &view->profile->recording : NULL;
}

bool view_is_sampled(const struct view *view, enum side side)
{
    const struct recording *recording = recording_of(view, side);
    return recording != NULL && sampling_has_errors(recording);
}

bool view_has_column(const struct view *view, const struct table *table, size_t column)
{
    uint32_t has = table->has | (view->old_selection != NULL ? WHEN_COMPARED : 0) |
                   (view_is_sampled(view, SIDE_NEW) ? WHEN_SAMPLED : 0) |
                   (view_is_sampled(view, SIDE_OLD) ? WHEN_OLD_SAMPLED : 0) |
                   (view->layout == VIEW_COLUMNS ? WHEN_COLUMNS : 0);
    uint32_t when = table->columns[column].when;
    return (when & has) == when;
}

static const void *row_at(const struct table *table, size_t row)
{
    return (const char *)table->rows + row * table->row_bytes;
}

const void *view_field_at(const struct table *table, const struct column *column, size_t row)
{
    return (const char *)row_at(table, row) + column->offset;
}

struct costs view_errors_of(const struct view *view, enum side side, const struct costs *costs)
{
    const struct sampling sampling = sampling_of(recording_of(view, side));
    return sampling_errors(&sampling, costs);
}

const struct costs *view_costs_at(const struct view *view,
                                  const struct table *table,
                                  const struct column *column,
                                  size_t row,
                                  struct costs *errors)
{
    static const struct costs none = {0};
    const bool is_direct = column->kind == CELL_COSTS || column->kind == CELL_ERRORS;
    const void *field = view_field_at(table, column, row);
    const struct costs *costs = is_direct ? field : *(const struct costs *const *)field;
    costs = costs != NULL ? costs : &none;
    if (column->kind != CELL_ERRORS && column->kind != CELL_ERRORS_AT) {
        return costs;
    }
    *errors =
        view_errors_of(view, (column->when & WHEN_OLD_SAMPLED) != 0 ? SIDE_OLD : SIDE_NEW, costs);
    return errors;
}

uint32_t view_unknown(const struct view *view, enum side side)
{
    const struct selection *selection = side == SIDE_OLD ? view->old_selection : view->selection;
    return selection != NULL ? selection->unknown : 0;
}

uint32_t
view_unknown_at(const struct view *view, const struct table *table, const struct column *column)
{
    const bool is_old = (column->when & (WHEN_COMPARED | WHEN_OLD_SAMPLED)) != 0;
    return table->unknown | view_unknown(view, is_old ? SIDE_OLD : SIDE_NEW);
}

void view_position(struct json_writer *w, uint32_t position)
{
    json_known_u64(w, position, position != REC_NONE);
}

void view_value(struct view *view,
                const struct table *table,
                const struct column *column,
                size_t row)
{
    struct json_writer *w = view->w;
    const void *field = view_field_at(table, column, row);
    switch (column->kind) {
    case CELL_U64:
        json_value_u64(w, *(const uint64_t *)field);
        break;
    case CELL_U32:
        json_value_u64(w, *(const uint32_t *)field);
        break;
    case CELL_POSITION:
        view_position(w, *(const uint32_t *)field);
        break;
    case CELL_BOOL:
        json_value_bool(w, *(const bool *)field);
        break;
    case CELL_OPTIONAL:
        json_known_u64(w, *(const uint64_t *)field, *(const uint64_t *)field != VALUE_UNKNOWN);
        break;
    case CELL_DOUBLE:
        json_value_double(w, *(const double *)field);
        break;
    case CELL_TEXT:
        json_value_string(w, *(const char *const *)field);
        break;
    case CELL_STRING:
        json_value_string(w, profile_string(view->profile, *(const rec_string *)field));
        break;
    case CELL_WRITE:
        column->write(view, row_at(table, row));
        break;
    case CELL_LOCATION:
    case CELL_FUNCTION:
    case CELL_COSTS:
    case CELL_COSTS_AT:
    case CELL_ERRORS:
    case CELL_ERRORS_AT:
    case CELL_FRAMES:
        break; // not a single value in both layouts
    }
}

// `place` is a node or an index.
uint32_t frame_list_begin(const struct frame_list *frames)
{
    return frames->tree != NULL ? frames->node : 0;
}

bool frame_list_next(const struct frame_list *frames, uint32_t *place, struct frame_at *out)
{
    if (frames->tree != NULL) {
        const struct call_tree_node *node = &frames->tree->nodes.items[*place];
        if (*place == 0) {
            return false;
        }
        *out = (struct frame_at){node->location, node->is_inlined, node->frame};
        *place = node->parent;
        return true;
    }
    if (*place >= frames->count) {
        return false;
    }
    *out = (struct frame_at){frames->locations[*place], frames->inlined[*place] != 0, REC_NONE};
    (*place)++;
    return true;
}
