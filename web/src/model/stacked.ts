// Stacked areas: each layer's upper edge is the sum of itself and the layers below. Pure. The
// layers come from the server, which guarantees that their sum is the total.

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
