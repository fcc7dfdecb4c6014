// A chart over time by uPlot: areas stacked from below, lines above them, a marked range, a brush.
// Uses only pixels and numbers; the given formats define their meaning.
//
// Ownership: the caller destroys the chart. Hovering, brushing and clicking only call the caller's
// functions.
import { shownText } from '../base/shown-text';
import { TIME_STEPS_MS } from '../base/ticks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { countColumns, FEW_MARKS, labelRows, SHADES, shades } from '../model/mark-density';
import type { ChartSpec } from './chart-spec';

export interface ChartEvents {
  readonly hover: (index: number | null) => void;
  /** null: dragging does not select. */
  readonly brush: ((fromMs: number, toMs: number) => void) | null;
  readonly click: (ms: number) => void;
}

const CLICK_PX = 4;
/** Right of the plot: half of the longest label of a time, "12 min 30 s". */
const LAST_LABEL_PX = 40;
/** Labels of marks are in several rows, so that neighbours are readable. */
const MARK_ROWS = 6;
const MARK_ROW_PX = 15;
/** The band of shades of many marks. */
const DENSITY_PX = 8;
const DENSITY_COLUMN_PX = 2;
const BINARY_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

function seriesOf(spec: ChartSpec): uPlot.Series[] {
  const paths = spec.isStepped && uPlot.paths.stepped !== undefined ? { paths: uPlot.paths.stepped({ align: -1 }) } : {};
  // The highest edge is painted first, so that each lower area covers its own part.
  const areas = [...spec.areas].reverse().map((area) => ({
    fill: area.colour,
    stroke: area.colour,
    width: 0,
    points: { show: false },
    spanGaps: area.hasGaps !== true,
    ...(area.isStep === true && uPlot.paths.stepped !== undefined ? { paths: uPlot.paths.stepped({ align: 1 }) } : paths),
  }));
  const lines = spec.lines.map((line) => ({
    stroke: line.colour,
    width: line.width,
    points: { show: false },
    spanGaps: line.hasGaps !== true,
    ...(line.dash === undefined ? {} : { dash: [...line.dash] }),
    ...paths,
  }));
  return [{}, ...areas, ...lines];
}

/** Many marks are shades at the top: how many there are at each place. */
function drawDensity(chart: uPlot, timesMs: readonly number[], colour: string): void {
  const { ctx, bbox } = chart;
  const width = DENSITY_COLUMN_PX * devicePixelRatio;
  const from = chart.posToVal(0, 'x');
  const to = chart.posToVal(bbox.width / devicePixelRatio, 'x');
  const counts = countColumns(timesMs.map((ms) => ms - from), Math.max(to - from, 1), Math.max(Math.floor(bbox.width / width), 1));
  ctx.fillStyle = colour;
  shades(counts).forEach((shade, column) => {
    if (shade > 0) {
      ctx.globalAlpha = shade / SHADES;
      ctx.fillRect(bbox.left + column * width, bbox.top, width, DENSITY_PX * devicePixelRatio);
    }
  });
  ctx.globalAlpha = 1;
}

function drawMarkLines(chart: uPlot, spec: ChartSpec): void {
  const { ctx, bbox } = chart;
  const isDense = spec.marks.length > FEW_MARKS;
  ctx.strokeStyle = spec.ink.mark;
  ctx.setLineDash([4, 4]);
  for (const mark of spec.marks) {
    if (!isDense || mark.isMain === true) {
      const x = chart.valToPos(mark.ms, 'x', true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
  }
  ctx.setLineDash([]);
  if (isDense) {
    drawDensity(chart, spec.marks.filter((mark) => mark.isMain !== true).map((mark) => mark.ms), spec.ink.mark);
  }
}

/** Labels where there is room. They have a rim of the background, so that no line crosses them out. */
function drawLabels(chart: uPlot, spec: ChartSpec): void {
  const { ctx, bbox } = chart;
  const labelled = [...spec.marks.filter((mark) => mark.isMain === true), ...spec.marks.filter((mark) => mark.isMain !== true).slice(0, FEW_MARKS)];
  const ratio = devicePixelRatio;
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  ctx.lineWidth = 4 * ratio;
  ctx.strokeStyle = spec.ink.background;
  ctx.fillStyle = spec.ink.text;
  const places = labelled.map((mark) => {
    const x = chart.valToPos(mark.ms, 'x', true);
    const width = ctx.measureText(shownText(mark.label)).width;
    const left = x > bbox.left + bbox.width / 2 ? x - 6 - width : x + 6;
    return { left, right: left + width };
  });
  const top = bbox.top + 3 + (spec.marks.length > FEW_MARKS ? DENSITY_PX * ratio : 0);
  labelRows(places, MARK_ROWS).forEach((row, index) => {
    if (row >= 0) {
      const text = shownText(labelled[index]?.label ?? '');
      const left = places[index]?.left ?? 0;
      ctx.strokeText(text, left, top + row * MARK_ROW_PX * ratio);
      ctx.fillText(text, left, top + row * MARK_ROW_PX * ratio);
    }
  });
}

function drawMarks(chart: uPlot, spec: ChartSpec): void {
  const { ctx, bbox } = chart;
  ctx.save();
  if (spec.marked !== null) {
    const from = chart.valToPos(spec.marked.fromMs, 'x', true);
    const to = chart.valToPos(spec.marked.toMs, 'x', true);
    ctx.fillStyle = spec.ink.range;
    ctx.fillRect(from, bbox.top, Math.max(to - from, 2), bbox.height);
  }
  drawMarkLines(chart, spec);
  drawLabels(chart, spec);
  ctx.restore();
}

function axesOf(spec: ChartSpec): uPlot.Axis[] {
  const ink = { stroke: spec.ink.text, grid: { stroke: spec.ink.grid, width: 1 }, ticks: { stroke: spec.ink.grid, width: 1 } };
  return [
    { ...ink, space: 80, incrs: [...TIME_STEPS_MS], values: (_chart, splits) => splits.map((ms) => spec.formatTime(ms)) },
    { ...ink, size: 76, ...(spec.isBinary ? { incrs: BINARY_STEPS } : {}), values: (_chart, splits) => splits.map((value) => spec.formatValue(value)) },
  ];
}

export function drawTimeChart(box: HTMLElement, spec: ChartSpec, events: ChartEvents): uPlot {
  const data: uPlot.AlignedData = [
    [...spec.timesMs],
    ...[...spec.areas].reverse().map((area) => [...area.edge]),
    ...spec.lines.map((line) => [...line.values]),
  ];
  const options: uPlot.Options = {
    width: Math.max(box.clientWidth, 200),
    height: Math.max(box.clientHeight, 160),
    legend: { show: false },
    padding: [null, LAST_LABEL_PX, null, null],
    scales: { x: { time: false }, y: { range: (_chart, _low, high) => [0, high === null || high <= 0 ? 1 : high * 1.06] } },
    axes: axesOf(spec),
    series: seriesOf(spec),
    cursor: { drag: { x: events.brush !== null, y: false, setScale: false }, points: { show: false }, y: false },
    hooks: {
      draw: [(chart) => drawMarks(chart, spec)],
      setCursor: [(chart) => events.hover(chart.cursor.idx ?? null)],
      setSelect: [
        (chart) => {
          if (chart.select.width >= CLICK_PX) {
            events.brush?.(chart.posToVal(chart.select.left, 'x'), chart.posToVal(chart.select.left + chart.select.width, 'x'));
          }
        },
      ],
    },
  };
  const chart = new uPlot(options, data, box);
  let downX = 0;
  chart.over.addEventListener('mousedown', (event) => (downX = event.clientX));
  chart.over.addEventListener('click', (event) => {
    if (Math.abs(event.clientX - downX) < CLICK_PX) {
      events.click(chart.posToVal(event.offsetX, 'x'));
    }
  });
  return chart;
}
