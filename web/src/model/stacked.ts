// Stacked areas: each layer's upper edge is the sum of itself and those below. Pure; the layers come from the
// server, which promises that together they are the total.

export interface StackedLayer {
  readonly label: string;
  readonly values: readonly number[];
}

/** Upper edges, lowest layer first. */
export function stackUp(layers: readonly StackedLayer[]): readonly (readonly number[])[] {
  const edges: number[][] = [];
  let below: readonly number[] = [];
  for (const layer of layers) {
    const edge = layer.values.map((value, i) => value + (below[i] ?? 0));
    edges.push(edge);
    below = edge;
  }
  return edges;
}
