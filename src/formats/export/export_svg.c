// SPDX-License-Identifier: MIT
// export_svg: one cost as an interactive flame graph.
//
//   callers below, callees above; a frame is as wide as its share of the cost; the widest first
//
// Frames are functions (lines are merged), coloured by module. The file is self-contained: it
// includes svg/flame_graph.js, which zooms and searches, and its style. Viewers without scripts
// show the picture and, as <title>, each frame's figures. Bounded: frames narrower than MIN_WIDTH
// are omitted and counted, so a file has at most some MAX_WIDTH / MIN_WIDTH frames a level. Trust:
// names are hostile; they are cleaned and escaped, and used in text only, never in markup or
// script. Context: H.
#include <inttypes.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/codec/clean_text.h"
#include "formats/export/exporter.h"
#include "host/text/format.h"
#include "host/text/utf8.h"
#include "profile/accuracy/sampling.h"

// svg/parts.S
extern const char svg_script[];
extern const char svg_style[];

enum {
    MAX_WIDTH = 1200,
    FRAME_HEIGHT = 16,
    HEAD_HEIGHT = 62,
    FOOT_HEIGHT = 12,
    TEXT_PADDING = 3,
    SHORTEST_TEXT = 3, // letters
};

static const double min_width = 0.25;
static const double glyph_width = 6.6; // as in flame_graph.js

// One for each module, in turn. All are light, for black text.
static const char *const fills[] = {"#ffb474", "#8fc7e8", "#a8d98c", "#e8a0b4", "#f2d16b",
                                    "#b9aee8", "#8edccb", "#e0b48c", "#c7d96b", "#d9a8d9"};

struct frame {
    uint32_t node;
    double x;
};

DEFINE_VEC(frame_vec, struct frame);

struct drawing {
    const struct export_view *view; // borrowed
    struct call_tree tree;          // owned; by function
    enum cost cost;
    struct frame_vec frames; // owned; a parent before its children
    struct u32_vec siblings; // owned; scratch
    uint32_t depth;          // of the deepest frame
    uint64_t omitted_count;  // frames that are too narrow, without the frames above them
    struct strbuf text;      // owned; scratch
};

static void drawing_release(struct drawing *drawing)
{
    call_tree_release(&drawing->tree);
    frame_vec_release(&drawing->frames);
    u32_vec_release(&drawing->siblings);
    strbuf_release(&drawing->text);
}

static uint64_t weight_of(const struct drawing *drawing, uint32_t node)
{
    return costs_get(tree_costs_total(&drawing->tree.costs, node), drawing->cost);
}

static double width_of(const struct drawing *drawing, uint32_t node)
{
    return (double)weight_of(drawing, node) / (double)weight_of(drawing, 0) * MAX_WIDTH;
}

// --- layout ------------------------------------------------------------------------------------

// Order by width, the widest first; equal nodes in the order of the recording, so that a recording
// always gives the same picture.
static int by_weight(const void *left, const void *right, void *context)
{
    const struct drawing *drawing = context;
    uint32_t one = *(const uint32_t *)left;
    uint32_t other = *(const uint32_t *)right;
    return order_u64(weight_of(drawing, other), weight_of(drawing, one)) ?: order_u64(one, other);
}

static void place_children(struct drawing *drawing, struct frame parent)
{
    const struct call_tree_node *nodes = drawing->tree.nodes.items;
    u32_vec_clear(&drawing->siblings);
    for (uint32_t at = nodes[parent.node].first_child; at != REC_NONE;
         at = nodes[at].next_sibling) {
        u32_vec_add(&drawing->siblings, at);
    }
    u32_vec_sort_by(&drawing->siblings, by_weight, drawing);
    double x = parent.x;
    for (size_t i = 0; i < drawing->siblings.len; i++) {
        uint32_t node = drawing->siblings.items[i];
        double width = width_of(drawing, node);
        if (width < min_width) {
            drawing->omitted_count += weight_of(drawing, node) > 0;
            continue;
        }
        frame_vec_add(&drawing->frames, (struct frame){.node = node, .x = x});
        drawing->depth = max_u64(drawing->depth, nodes[node].depth);
        x += width;
    }
}

static void lay_out(struct drawing *drawing)
{
    if (weight_of(drawing, 0) == 0) {
        return;
    }
    frame_vec_add(&drawing->frames, (struct frame){0});
    for (size_t i = 0; i < drawing->frames.len; i++) {
        place_children(drawing, drawing->frames.items[i]);
    }
}

// --- drawing -----------------------------------------------------------------------------------

// Read the character at `text`, which clean_append made valid. Return its length.
static size_t letter_bytes(const char *text, uint32_t *code)
{
    const size_t len = utf8_decode(text, code);
    return len > 0 ? len : 1;
}

// Write cleaned text as XML character data. U+FFFE and U+FFFF are valid in UTF-8 but not in XML.
static void write_escaped(FILE *out, const char *text, size_t letters)
{
    for (; *text != '\0' && letters > 0; letters--) {
        uint32_t code = 0;
        const size_t len = letter_bytes(text, &code);
        const bool is_no_character = code == 0xfffe || code == 0xffff;
        switch (*text) {
        case '&':
            (void)fputs("&amp;", out);
            break;
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        default:
            (void)fwrite(is_no_character ? "\xef\xbf\xbd" : text, 1, len, out);
            break;
        }
        text += len;
    }
}

static size_t count_letters(const char *text)
{
    size_t count = 0;
    for (uint32_t code; *text != '\0'; text += letter_bytes(text, &code)) {
        count++;
    }
    return count;
}

static struct human format_amount(const struct drawing *drawing, uint64_t value)
{
    return cost_get_info(drawing->cost)->unit == COST_UNIT_BYTES ? format_bytes(value)
                                                                 : format_count(value);
}

// Write an amount of a frame and its error, as "50.0 MiB ±21%".
static void write_amount(const struct drawing *drawing, const struct costs *costs, FILE *out)
{
    const struct sampling sampling = sampling_of(&drawing->view->profile->recording);
    const struct costs errors = sampling_errors(&sampling, costs);
    const uint64_t value = costs_get(costs, drawing->cost);
    (void)fprintf(out, "%s%s", format_amount(drawing, value).text,
                  sampling_format_error(value, costs_get(&errors, drawing->cost)).text);
}

// Set drawing->text to the name of a frame.
static void name_frame(struct drawing *drawing, uint32_t node)
{
    strbuf_clear(&drawing->text);
    if (node == 0) {
        strbuf_append_text(&drawing->text, "all");
        return;
    }
    clean_append_function(&drawing->text, drawing->view->profile,
                          drawing->tree.nodes.items[node].location, (struct clean_rule){0});
}

static void write_title(struct drawing *drawing, uint32_t node, FILE *out)
{
    uint64_t weight = weight_of(drawing, node);
    uint64_t self = costs_get(tree_costs_self(&drawing->tree.costs, node), drawing->cost);
    (void)fputs("<title>", out);
    write_escaped(out, strbuf_text(&drawing->text), SIZE_MAX);
    (void)fputs("\n", out);
    write_amount(drawing, tree_costs_total(&drawing->tree.costs, node), out);
    (void)fputs(", ", out);
    write_escaped(out, format_percent(weight, weight_of(drawing, 0)).text, SIZE_MAX);
    if (self > 0) {
        (void)fputs("\nself ", out);
        write_amount(drawing, tree_costs_self(&drawing->tree.costs, node), out);
    }
    const struct profile *profile = drawing->view->profile;
    if (node != 0) {
        strbuf_clear(&drawing->text);
        clean_append(&drawing->text,
                     profile_location_module(profile, drawing->tree.nodes.items[node].location),
                     (struct clean_rule){0});
        (void)fputs(drawing->text.len > 0 ? "\n" : "", out);
        write_escaped(out, strbuf_text(&drawing->text), SIZE_MAX);
    }
    (void)fputs("</title>", out);
}

static const char *fill_of(const struct drawing *drawing, uint32_t node)
{
    if (node == 0) {
        return "#d5d8dc";
    }
    const struct code_index *code = &drawing->view->profile->code;
    uint32_t location = drawing->tree.nodes.items[node].location;
    uint32_t module = code->functions.items[code->locations.items[location].function].module;
    return module == REC_NONE ? "#c8c8c8" : fills[module % ARRAY_LEN(fills)];
}

static void write_frame(struct drawing *drawing, struct frame frame, FILE *out)
{
    uint32_t level = drawing->depth - drawing->tree.nodes.items[frame.node].depth;
    uint32_t y = HEAD_HEIGHT + level * FRAME_HEIGHT;
    double width = width_of(drawing, frame.node);
    (void)fputs("<g class=\"frame\">", out);
    name_frame(drawing, frame.node);
    write_title(drawing, frame.node, out);
    (void)fprintf(out,
                  "<rect x=\"%.4f\" y=\"%" PRIu32 "\" width=\"%.4f\" height=\"%d\" fill=\"%s\"/>"
                  "<text x=\"%.4f\" y=\"%" PRIu32 "\">",
                  frame.x, y, width, FRAME_HEIGHT - 1, fill_of(drawing, frame.node),
                  frame.x + TEXT_PADDING, y + FRAME_HEIGHT - 5);
    name_frame(drawing, frame.node);
    double room = (width - 2 * TEXT_PADDING) / glyph_width;
    if (room >= SHORTEST_TEXT) {
        size_t fits = (size_t)room;
        bool is_cut = count_letters(strbuf_text(&drawing->text)) > fits;
        write_escaped(out, strbuf_text(&drawing->text), is_cut ? fits - 2 : fits);
        (void)fputs(is_cut ? ".." : "", out);
    }
    (void)fputs("</text></g>\n", out);
}

static void write_head(struct drawing *drawing, uint32_t height, FILE *out)
{
    const struct profile *profile = drawing->view->profile;
    const struct cost_info cost = profile_cost_info(profile, drawing->cost);
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
                  "height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32 "\">\n<style>\n%s</style>\n",
                  MAX_WIDTH, height, MAX_WIDTH, height, svg_style);
    strbuf_clear(&drawing->text);
    clean_append(&drawing->text, profile_string(profile, profile->recording.meta.command_line),
                 (struct clean_rule){0});
    (void)fputs("<text class=\"heading\" x=\"4\" y=\"20\">", out);
    write_escaped(out, strbuf_text(&drawing->text), MAX_WIDTH / 10);
    (void)fprintf(out, "</text>\n<text class=\"fact\" x=\"4\" y=\"40\">%s: ", cost.phrase);
    write_amount(drawing, tree_costs_total(&drawing->tree.costs, 0), out);
    if (drawing->omitted_count > 0) {
        (void)fprintf(out, "; %s too narrow to draw, and what is above, omitted",
                      format_things(drawing->omitted_count, "frame", "frames").text);
    }
    (void)fputs(
        "</text>\n"
        "<foreignObject id=\"controls\" x=\"820\" y=\"28\" width=\"380\" height=\"30\""
        " style=\"display:none\"><div xmlns=\"http://www.w3.org/1999/xhtml\">"
        "<input id=\"search\" placeholder=\"search: text or /regex/\""
        " aria-label=\"Search functions\"/> <button id=\"back\">Back</button></div>"
        "</foreignObject>\n<text class=\"fact\" id=\"matched\" x=\"690\" y=\"40\"></text>\n",
        out);
}

static MUST_USE enum err build_tree(const struct export_view *view, struct call_tree *out)
{
    const struct call_tree_folds *folds = call_tree_folds_of(view->frames);
    return folds != NULL
               ? call_tree_build_sites(&view->selection, CALL_TREE_BY_FUNCTION, folds, out)
               : call_tree_build(&view->selection, CALL_TREE_BY_FUNCTION, false, out);
}

static enum err write_svg(const struct export_view *view, FILE *out)
{
    CLEANUP(drawing_release)
    struct drawing drawing = {.view = view, .cost = view->usual_cost};
    TRY(build_tree(view, &drawing.tree));
    lay_out(&drawing);
    uint32_t height = HEAD_HEIGHT + (drawing.depth + 1) * FRAME_HEIGHT + FOOT_HEIGHT;
    write_head(&drawing, height, out);
    for (size_t i = 0; i < drawing.frames.len; i++) {
        write_frame(&drawing, drawing.frames.items[i], out);
    }
    if (drawing.frames.len > 0) {
        (void)fprintf(out, "<script><![CDATA[\n%s]]></script>\n", svg_script);
    }
    (void)fputs("</svg>\n", out); // the code that closes the stream finds its error
    return ERR_OK;
}

const struct exporter exporter_svg = {
    .name = "svg",
    .file_suffix = ".svg",
    .help = "a flame graph of one cost for any browser, with zoom and search",
    .uses = EXPORT_USES_COST | EXPORT_FOLDS,
    .write = write_svg,
};
