// A small chart of the run: live heap over time with the peak marked. A click opens the charts.
import type { JSX } from 'preact';
import { series as seriesAnswer, type Series } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatMs } from '../base/format';
import { markText } from '../model/mark';
import { BLOCK_FIELDS, isFiltered, isMoment, stackParams, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { useCapability, useMeta } from './parts/meta-context';
import './mini-timeline.css';

const WIDTH = 1000;
const HEIGHT = 100;

/** The time range of the filter, in shares of the run; null without one. */
function markedRange(address: Address, maxX: number): { readonly from: number; readonly to: number } | null {
  if (address.from_ms === '' && address.to_ms === '') {
    return null;
  }
  const to = address.to_ms === '' ? 1 : Math.min(Number(address.to_ms) / maxX, 1);
  return { from: isMoment(address) ? to : Math.min(Number(address.from_ms) / maxX, 1), to };
}

function areaPath(x: readonly number[], y: readonly number[], maxX: number, maxY: number): string {
  const point = (i: number): string =>
    `${((at(x, i) / maxX) * WIDTH).toFixed(1)} ${(HEIGHT - (at(y, i) / maxY) * (HEIGHT - 6)).toFixed(1)}`;
  const line = range(x.length).map((i) => `L${point(i)}`);
  return `M0 ${HEIGHT}${line.join('')}L${((at(x, x.length - 1) / maxX) * WIDTH).toFixed(1)} ${HEIGHT}Z`;
}

function Drawing(props: { readonly series: Series; readonly address: Address }): JSX.Element {
  const { series, address } = props;
  const { points, peak } = series;
  const { marks } = useMeta();
  const maxX = Math.max(at(points.end_ms, points.count - 1), 1);
  // The highest value within each slice: else a peak between two ends of slices would be missing.
  const maxY = points.live_max_bytes.reduce((high, bytes) => Math.max(high, bytes), 1);
  const marked = markedRange(address, maxX);
  const peakX = Math.min(peak.time_ms / maxX, 1) * 100;
  return (
    <button type="button" class="mini" onClick={() => go({ view: 'charts' })}>
      <span class="visually-hidden">Show the heap over time: </span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="mini-area" d={areaPath(points.end_ms, points.live_max_bytes, maxX, maxY)} />
      </svg>
      {marked === null ? null : <span class="mini-range" data-testid="mini-range" style={{ left: `${(marked.from * 100).toFixed(2)}%`, width: `${((marked.to - marked.from) * 100).toFixed(2)}%` }} />}
      <span class="mini-peak" style={{ left: `${peakX.toFixed(2)}%` }} />
      <span class={peakX > 60 ? 'mini-label mini-label-left' : 'mini-label'} style={peakX > 60 ? { right: `${(100 - peakX).toFixed(2)}%` } : { left: `${peakX.toFixed(2)}%` }}>
        {`${isFiltered(address) ? 'peak of the whole heap' : 'peak'} ${formatBytes(peak.bytes)} after ${formatMs(peak.time_ms)}`}
      </span>
      {marks.map((mark, index) => (
        <span key={index} class="mini-mark" title={markText(mark)} style={{ left: `${(Math.min(mark.time_ms / maxX, 1) * 100).toFixed(2)}%` }} />
      ))}
      {BLOCK_FIELDS.some((field) => address[field] !== '') ? <span class="mini-note">sizes and lifetimes are not applied here</span> : null}
      <span class="mini-end">{formatMs(maxX)}</span>
    </button>
  );
}

export function MiniTimeline(): JSX.Element | null {
  const address = useAddress();
  const hasSlices = useCapability('slices');
  const asked = useAsk(hasSlices ? 'series' : null, { ...stackParams(address), top: '1' }, seriesAnswer);
  if (asked.value === null || asked.value.points.count === 0) {
    return null;
  }
  return <Drawing series={asked.value} address={address} />;
}
