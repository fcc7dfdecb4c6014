// The time line of the run, which filters all views: live heap and RSS, marks, the peak, and the
// time range of the filter. Dragging chooses a range, a click the heap at a moment; the ends of the
// range are sliders, for the keyboard.
import type { JSX, RefObject } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { series as seriesAnswer, type Series } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatCount, formatMs } from '../base/format';
import { errorBeside } from '../model/cost';
import { markText, type Mark } from '../model/mark';
import { countColumns, FEW_MARKS, SHADES, shades } from '../model/mark-density';
import { areaPath, lastAt, stepPath, STRIP, type Scale } from '../model/time-strip';
import { BLOCK_FIELDS, comparesRanges, isFiltered, isMoment, stackParams, TIME_FIELDS, type Address } from '../state/address';
import { compareTime, filterTime, go, resetTime, showMoment, stopComparingTime } from '../state/app-state';
import { isFilteredBeyond } from '../state/filter-reach';
import { useAddress, useAsk } from '../state/hooks';
import { useCapability, useComparison, useMeta } from './parts/meta-context';
import './time-line.css';

interface Span {
  readonly from: number;
  readonly to: number;
}

/** Shorter drags are clicks. */
const DRAG_PX = 4;
/** Of the shades of many marks. */
const MARK_COLUMNS = 500;

/** The time range of the filter, in milliseconds; null without one. */
function spanOf(address: Address, maxMs: number): Span | null {
  if (address.from_ms === '' && address.to_ms === '') {
    return null;
  }
  const to = address.to_ms === '' ? maxMs : Math.min(Number(address.to_ms), maxMs);
  return { from: isMoment(address) ? to : Math.min(Number(address.from_ms), to), to };
}

function percent(ms: number, maxMs: number): string {
  return `${((Math.min(ms, maxMs) / maxMs) * 100).toFixed(2)}%`;
}

function highest(values: readonly number[], least: number): number {
  return values.reduce((high, value) => (value > high ? value : high), least);
}

/** Of many marks, those at a time. */
function marksAt(marks: readonly Mark[], ms: number, maxMs: number): string {
  if (marks.length <= FEW_MARKS) {
    return '';
  }
  const near = marks.filter((mark) => Math.abs(mark.time_ms - ms) <= maxMs / MARK_COLUMNS);
  const first = near[0];
  return first === undefined ? '' : `; ${near.length === 1 ? '' : `${formatCount(near.length)} marks, `}${markText(first)}`;
}

/** The shades of the marks, as one path each. */
function shadePaths(timesMs: readonly number[], maxMs: number): readonly string[] {
  const columns = shades(countColumns(timesMs, maxMs, MARK_COLUMNS));
  return range(SHADES).map((shade) => columns.map((own, column) => (own === shade + 1 ? `M${column} 0h1v1h-1z` : '')).join(''));
}

/** What is there at a time, as text. */
function textAt(series: Series, ms: number, hasRss: boolean): string {
  const slice = lastAt(series.points.start_ms, ms);
  const sample = lastAt(series.rss.time_ms, ms);
  const bytes = slice < 0 ? 0 : at(series.points.live_bytes, slice);
  const heap = slice < 0 ? '' : `, heap ${formatBytes(bytes)}${errorBeside(bytes, series.points.live_bytes_error?.[slice])}`;
  const rss = !hasRss || sample < 0 ? '' : `, RSS ${formatBytes(at(series.rss.rss_bytes, sample))}`;
  return `${formatMs(ms)}${heap}${rss}`;
}

/** One end of the range. */
function Handle(props: { readonly which: 'from' | 'to'; readonly span: Span; readonly maxMs: number }): JSX.Element {
  const { which, span, maxMs } = props;
  const ms = span[which];
  const step = Math.max(maxMs / 100, 1);
  const set = (next: number): void => {
    const bounded = Math.round(Math.min(Math.max(next, which === 'from' ? 0 : span.from + 1), which === 'from' ? span.to - 1 : maxMs));
    filterTime(which === 'from' ? bounded : span.from, which === 'to' ? bounded : span.to);
  };
  const moves: Readonly<Record<string, number>> = {
    ArrowLeft: ms - step,
    ArrowDown: ms - step,
    ArrowRight: ms + step,
    ArrowUp: ms + step,
    PageDown: ms - 10 * step,
    PageUp: ms + 10 * step,
    Home: 0,
    End: maxMs,
  };
  return (
    <span
      class={`time-handle time-handle-${which}`}
      role="slider"
      tabIndex={0}
      aria-label={which === 'from' ? 'Time range from' : 'Time range to'}
      aria-valuemin={0}
      aria-valuemax={Math.round(maxMs)}
      aria-valuenow={Math.round(ms)}
      aria-valuetext={formatMs(ms)}
      style={{ left: percent(ms, maxMs) }}
      onKeyDown={(event) => {
        const next = moves[event.key];
        if (next !== undefined) {
          event.preventDefault();
          event.stopPropagation();
          set(next);
        }
      }}
    />
  );
}

/** Draws each mark, or shades where the marks have no room. */
function Marks(props: { readonly maxMs: number }): JSX.Element {
  const { marks } = useMeta();
  const { maxMs } = props;
  const bands = useMemo(() => (marks.length > FEW_MARKS ? shadePaths(marks.map((mark) => mark.time_ms), maxMs) : null), [marks, maxMs]);
  if (bands !== null) {
    return (
      <svg class="time-marks" viewBox={`0 0 ${MARK_COLUMNS} 1`} preserveAspectRatio="none" role="img" aria-label={`${formatCount(marks.length)} marks`} data-testid="time-marks">
        {bands.map((band, shade) => (
          <path key={shade} d={band} fill-opacity={(shade + 1) / SHADES} />
        ))}
      </svg>
    );
  }
  return (
    <>
      {marks.map((mark, index) => (
        <span key={index} class="time-mark" title={`${formatMs(mark.time_ms)}: ${markText(mark)}`} style={{ left: percent(mark.time_ms, maxMs) }} />
      ))}
    </>
  );
}

/** Drawn anew only for other data: pointing at the strip must cost nothing. */
function Curves(props: { readonly series: Series; readonly old: Series | null; readonly scale: Scale; readonly hasRss: boolean }): JSX.Element {
  const { series, old, scale, hasRss } = props;
  return useMemo(
    () => (
      <svg viewBox={`0 0 ${STRIP.width} ${STRIP.height}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="time-heap" d={areaPath(series.points.end_ms, series.points.live_max_bytes, scale)} />
        {old === null ? null : <path class="time-old" d={stepPath(old.points.end_ms, old.points.live_max_bytes, scale, old.points.end_ms.at(-1))} />}
        {hasRss ? <path class="time-rss" d={stepPath(series.rss.time_ms, series.rss.rss_bytes, scale)} /> : null}
      </svg>
    ),
    [series, old, scale.maxMs, scale.maxValue, hasRss],
  );
}

interface Dragged extends Span {
  /** Where it began, in pixels. */
  readonly startPx: number;
}

interface StripProps {
  readonly series: Series;
  /** Of the recording compared with, or null. */
  readonly old: Series | null;
  readonly scale: Scale;
  readonly hasRss: boolean;
  readonly canBrush: boolean;
  /** The next drag chooses the range to compare with. */
  readonly isSecond: boolean;
  readonly onSecond: () => void;
  readonly onHover: (ms: number | null) => void;
}

interface Brush {
  readonly dragged: Dragged | null;
  readonly begin: (event: PointerEvent) => void;
  readonly move: (event: PointerEvent) => void;
  readonly end: (event: PointerEvent) => void;
  readonly cancel: () => void;
}

/** Dragging over the strip, and clicks on it. */
function useBrush(props: StripProps, box: RefObject<HTMLElement | null>): Brush {
  const { maxMs } = props.scale;
  const [dragged, setDragged] = useState<Dragged | null>(null);
  const msAt = (event: PointerEvent): number => {
    const edges = box.current?.getBoundingClientRect();
    return edges === undefined ? 0 : Math.min(Math.max((event.clientX - edges.left) / Math.max(edges.width, 1), 0), 1) * maxMs;
  };
  const choose = (from: number, to: number): void => {
    if (props.isSecond) {
      props.onSecond();
      compareTime(from, to);
    } else {
      filterTime(from, to);
    }
  };
  return {
    dragged,
    begin: (event) => {
      if (props.canBrush && event.button === 0) {
        box.current?.setPointerCapture(event.pointerId);
        setDragged({ from: msAt(event), to: msAt(event), startPx: event.clientX });
      }
    },
    move: (event) => {
      props.onHover(msAt(event));
      setDragged((old) => (old === null ? null : { ...old, to: msAt(event) }));
    },
    end: (event) => {
      if (dragged === null) {
        return;
      }
      setDragged(null);
      const to = msAt(event);
      if (Math.abs(event.clientX - dragged.startPx) < DRAG_PX) {
        showMoment(to);
      } else {
        choose(Math.min(dragged.from, to), Math.max(dragged.from, to));
      }
    },
    cancel: () => setDragged(null),
  };
}

/** The range that the filter's is compared with; null without one. */
function otherSpan(address: Address, maxMs: number): Span | null {
  return comparesRanges(address) ? { from: Number(address.old_from_ms), to: Math.min(Number(address.old_to_ms), maxMs) } : null;
}

/** The strip with the drawing, the ranges and their ends; reports the time under the mouse. */
function Strip(props: StripProps): JSX.Element {
  const { series, scale, canBrush } = props;
  const { peak } = series;
  const { maxMs } = scale;
  const address = useAddress();
  const chosen = spanOf(address, maxMs);
  const before = props.isSecond ? chosen : otherSpan(address, maxMs);
  const box = useRef<HTMLDivElement>(null);
  const { dragged, begin, move, end, cancel } = useBrush(props, box);
  const span = dragged === null ? chosen : { from: Math.min(dragged.from, dragged.to), to: Math.max(dragged.from, dragged.to) };
  return (
    <div
      ref={box}
      class={canBrush ? 'time-strip time-strip-brush' : 'time-strip'}
      data-testid="time-strip"
      onPointerDown={begin}
      onPointerMove={move}
      onPointerUp={end}
      onPointerCancel={cancel}
      onPointerLeave={() => props.onHover(null)}
    >
      <Curves series={series} old={props.old} scale={scale} hasRss={props.hasRss} />
      <span class="time-peak" style={{ left: percent(peak.time_ms, maxMs) }} />
      <Marks maxMs={maxMs} />
      {before === null ? null : (
        <span class="time-range time-range-old" data-testid="time-range-old" style={{ left: percent(before.from, maxMs), width: percent(before.to - before.from, maxMs) }} />
      )}
      {span === null ? null : (
        <span class="time-range" data-testid="time-range" style={{ left: percent(span.from, maxMs), width: percent(span.to - span.from, maxMs) }} />
      )}
      {canBrush ? (
        <>
          <Handle which="from" span={chosen ?? { from: 0, to: maxMs }} maxMs={maxMs} />
          <Handle which="to" span={chosen ?? { from: 0, to: maxMs }} maxMs={maxMs} />
        </>
      ) : null}
    </div>
  );
}

/** What the strip shows, and what of the filter it does not. */
function headText(series: Series, address: Address, hasRss: boolean): string {
  const peakText = `${isFiltered(address) ? 'peak of the whole heap' : 'peak'} ${formatBytes(series.peak.bytes)}${errorBeside(series.peak.bytes, series.peak.error)} after ${formatMs(series.peak.time_ms)}`;
  const missing = BLOCK_FIELDS.some((field) => address[field] !== '') ? '; sizes and lifetimes are not applied' : '';
  const rss = hasRss && isFilteredBeyond(address, [...TIME_FIELDS, 'process']) ? '; RSS is not filtered' : '';
  return `${peakText}${missing}${rss}`;
}

function Drawing(props: { readonly series: Series; readonly old: Series | null; readonly address: Address; readonly isTall: boolean }): JSX.Element {
  const { series, old, address, isTall } = props;
  const canBrush = useCapability('time_range');
  const { marks } = useMeta();
  const [isSecond, setIsSecond] = useState(false);
  const hasRange = address.to_ms !== '' && !isMoment(address);
  const [hovered, setHovered] = useState<number | null>(null);
  const { points, rss } = series;
  const maxMs = Math.max(at(points.end_ms, points.count - 1), old?.points.end_ms.at(-1) ?? 0, 1);
  // The highest value within each slice: else a peak between two ends of slices would be missing.
  const heapMax = highest(old?.points.live_max_bytes ?? [], highest(points.live_max_bytes, 1));
  const hasRss = isTall && rss.count > 0;
  const scale = { maxMs, maxValue: hasRss ? highest(rss.rss_bytes, heapMax) : heapMax };
  return (
    <section class={isTall ? 'time time-tall' : 'time'} aria-label="Time">
      <div class="time-head">
        <span class="time-key">
          <span class="time-key-heap" /> heap
          {hasRss ? (
            <>
              <span class="time-key-rss" /> RSS
            </>
          ) : null}
          {old === null ? null : (
            <>
              <span class="time-key-rss time-key-old" /> heap before
            </>
          )}
        </span>
        <span class="time-now" data-testid="time-now">
          {hovered === null ? (canBrush ? 'Drag: a time range for all views. Click: the heap then.' : '') : `${textAt(series, hovered, hasRss)}${marksAt(marks, hovered, maxMs)}`}
        </span>
        {canBrush && hasRange && !comparesRanges(address) ? (
          <button type="button" class="link" aria-pressed={isSecond} title="Drag over a second range: all views then show what changed from the earlier to the later one" onClick={() => setIsSecond(!isSecond)}>
            {isSecond ? 'Drag over the other range' : 'Compare with another range'}
          </button>
        ) : null}
        {comparesRanges(address) ? (
          <button type="button" class="link" onClick={stopComparingTime}>
            Stop comparing
          </button>
        ) : null}
        {canBrush && (address.from_ms !== '' || address.to_ms !== '') ? (
          <button type="button" class="link" onClick={resetTime}>
            All of the run
          </button>
        ) : null}
        {isTall ? (
          <button type="button" class="link" onClick={() => go({ view: 'charts' })}>
            By call site
          </button>
        ) : null}
        <span class="time-end">{headText(series, address, hasRss)}</span>
      </div>
      <Strip series={series} old={old} scale={scale} hasRss={hasRss} canBrush={canBrush} isSecond={isSecond && hasRange} onSecond={() => setIsSecond(false)} onHover={setHovered} />
    </section>
  );
}

/** Keeps the place of the time line until the answer is there, so that what is below does not move. */
function Awaited(props: { readonly isTall: boolean }): JSX.Element {
  return (
    <div class={props.isTall ? 'time time-tall' : 'time'} aria-hidden="true">
      <div class="time-head">{'\u00a0'}</div>
      <div class="time-strip" />
    </div>
  );
}

/** Empty for a recording without time slices. `isTall`: with RSS. */
export function TimeLine(props: { readonly isTall: boolean }): JSX.Element | null {
  const address = useAddress();
  const hasSlices = useCapability('slices');
  const params = { ...stackParams(address), top: '0' };
  const asked = useAsk(hasSlices ? 'series' : null, params, seriesAnswer);
  const isDiff = useComparison();
  const old = useAsk(hasSlices && isDiff ? 'series' : null, { ...params, recording: 'old' }, seriesAnswer);
  if (hasSlices && asked.value === null && asked.busy) {
    return <Awaited isTall={props.isTall} />;
  }
  if (asked.value === null || asked.value.points.count === 0) {
    return null;
  }
  return <Drawing series={asked.value} old={isDiff ? old.value : null} address={address} isTall={props.isTall} />;
}
