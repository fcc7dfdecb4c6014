// The run in small: live heap over time with the peak marked. A click leads to the charts.
import type { JSX } from 'preact';
import { series as seriesAnswer, type Series } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatMs } from '../base/format';
import { markText } from '../model/mark';
import { stackParams } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { useCapability, useMeta } from './parts/meta-context';
import './mini-timeline.css';

const WIDTH = 1000;
const HEIGHT = 100;

function areaPath(x: readonly number[], y: readonly number[], maxX: number, maxY: number): string {
  const point = (i: number): string =>
    `${((at(x, i) / maxX) * WIDTH).toFixed(1)} ${(HEIGHT - (at(y, i) / maxY) * (HEIGHT - 6)).toFixed(1)}`;
  const line = range(x.length).map((i) => `L${point(i)}`);
  return `M0 ${HEIGHT}${line.join('')}L${((at(x, x.length - 1) / maxX) * WIDTH).toFixed(1)} ${HEIGHT}Z`;
}

function Drawing(props: { readonly series: Series }): JSX.Element {
  const { points, peak } = props.series;
  const { marks } = useMeta();
  const maxX = Math.max(at(points.end_ms, points.count - 1), 1);
  const maxY = Math.max(1, ...points.live_bytes, ...points.live_max_bytes);
  const peakX = Math.min(peak.time_ms / maxX, 1) * 100;
  return (
    <button type="button" class="mini" onClick={() => go({ view: 'charts' })}>
      <span class="visually-hidden">Show the heap over time: </span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="mini-area" d={areaPath(points.end_ms, points.live_bytes, maxX, maxY)} />
      </svg>
      <span class="mini-peak" style={{ left: `${peakX.toFixed(2)}%` }} />
      <span class={peakX > 60 ? 'mini-label mini-label-left' : 'mini-label'} style={peakX > 60 ? { right: `${(100 - peakX).toFixed(2)}%` } : { left: `${peakX.toFixed(2)}%` }}>
        {`peak ${formatBytes(peak.bytes)} after ${formatMs(peak.time_ms)}`}
      </span>
      {marks.map((mark, index) => (
        <span key={index} class="mini-mark" title={markText(mark)} style={{ left: `${(Math.min(mark.time_ms / maxX, 1) * 100).toFixed(2)}%` }} />
      ))}
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
  return <Drawing series={asked.value} />;
}
