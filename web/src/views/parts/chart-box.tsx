// A chart in the page: drawn again when its data, its size or the theme changes.
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ChartSpec } from '../../render/chart-spec';
import { drawTimeChart, type ChartEvents } from '../../render/time-chart';
import './chart-box.css';

/** A chart's width on a sheet of A4, within the margins. */
const PAPER_PX = 680;

export function ChartBox(props: {
  readonly spec: ChartSpec;
  readonly events: ChartEvents;
  readonly label: string;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const events = useRef(props.events);
  events.current = props.events;
  const canBrush = props.events.brush !== null;
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return undefined;
    }
    const chart = drawTimeChart(element, props.spec, {
      hover: (index) => events.current.hover(index),
      brush: canBrush ? (from, to) => events.current.brush?.(from, to) : null,
      click: (ms) => events.current.click(ms),
    });
    const paper = matchMedia('print');
    const fit = (): void => {
      chart.setSize({ width: paper.matches ? PAPER_PX : Math.max(element.clientWidth, 200), height: Math.max(element.clientHeight, 160) });
    };
    const observer = new ResizeObserver(fit);
    observer.observe(element);
    paper.addEventListener('change', fit);
    return () => {
      paper.removeEventListener('change', fit);
      observer.disconnect();
      chart.destroy();
    };
  }, [props.spec, canBrush]);
  return <div ref={box} class="chart" role="img" aria-label={props.label} data-testid="chart" />;
}
