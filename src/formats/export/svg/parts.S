// SPDX-License-Identifier: MIT
// parts: the script and the style of an exported flame graph, as texts for export_svg.c. The build
// gives the files' paths.
    .section .rodata
    .global svg_script
svg_script:
    .incbin SVG_SCRIPT
    .byte 0
    .global svg_style
svg_style:
    .incbin SVG_STYLE
    .byte 0
    .section .note.GNU-stack,"",%progbits
