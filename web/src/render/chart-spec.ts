// What a chart over time shows, in numbers and colours: painted by time-chart.ts, exported by time-picture.ts.

export interface ChartArea {
  readonly colour: string;
  /** null: not known then; the area goes straight on to what is. */
  readonly edge: readonly (number | null)[];
  /** Nothing is drawn where it is not known. */
  readonly hasGaps?: boolean;
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
  readonly marks: readonly { readonly ms: number; readonly label: string }[];
  readonly formatValue: (value: number) => string;
  /** Ticks at powers of two, as binary units need them. */
  readonly isBinary: boolean;
  readonly formatTime: (ms: number) => string;
  readonly ink: { readonly text: string; readonly grid: string; readonly mark: string; readonly range: string };
}
