// The description of a chart over time, in numbers and colours: time-chart.ts paints it,
// time-picture.ts exports it.

export interface ChartArea {
  readonly colour: string;
  /** null: unknown at that time; the area continues straight to the next known value. */
  readonly edge: readonly (number | null)[];
  /** Gaps where it is unknown. */
  readonly hasGaps?: boolean;
  /** Each value holds until the next one. */
  readonly isStep?: boolean;
}

export interface ChartLine {
  readonly colour: string;
  readonly width: number;
  readonly dash?: readonly number[];
  readonly hasGaps?: boolean;
  readonly values: readonly (number | null)[];
}

export interface ChartSpec {
  readonly timesMs: readonly number[];
  /** Lowest first; `edge` is the upper edge. */
  readonly areas: readonly ChartArea[];
  readonly lines: readonly ChartLine[];
  readonly isStepped: boolean;
  readonly marked: { readonly fromMs: number; readonly toMs: number } | null;
  /** The peak and the like are `isMain`: they are drawn however many others there are. */
  readonly marks: readonly { readonly ms: number; readonly label: string; readonly isMain?: boolean }[];
  readonly formatValue: (value: number) => string;
  /** Ticks at powers of two, for binary units. */
  readonly isBinary: boolean;
  readonly formatTime: (ms: number) => string;
  readonly ink: { readonly text: string; readonly grid: string; readonly mark: string; readonly range: string; readonly background: string };
}
