// A sentence in parts, so that no line of the page ends between a figure and its unit. Pure.

const FIGURE = /(\d[\d.,]* (?:[KMGTPE]iB|B|ns|us|ms|s|min|h|d)(?![\w%]))/;

/** Text and figures in turn, text first: "held ", "22.0 MiB", " at ", "1.2 s", ".". */
export function figureParts(sentence: string): readonly string[] {
  return sentence.split(FIGURE);
}
