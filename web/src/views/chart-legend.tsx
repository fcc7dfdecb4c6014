// The legend of the charts: the name of each area, its value at the pointer, and its stack.
import type { JSX } from 'preact';
import type { Series } from '../api/answers';
import { formatBytes, formatChange, formatMs } from '../base/format';
import { locationName } from '../model/code';
import { changeError, errorBeside } from '../model/cost';
import { palette } from '../render/colour';
import { useAddress } from '../state/hooks';
import { ASIDE, chartFormat, subjectOf, type ChartModel } from './charts-model';
import { FrameList } from './frame-list';
import { CodeLink } from './parts/code-label';
import { useDarkness } from './parts/theme-hook';

type Entry = Series['top'][number];

/** By stack: the frames, collapsed; a call site has none. */
function Frames(props: { readonly series: Series; readonly entry: Entry }): JSX.Element | null {
  const { series, entry } = props;
  if (entry.frames.length === 0) {
    return null;
  }
  return (
    <details class="legend-stack">
      <summary>{`${entry.frames.length} frames`}</summary>
      <FrameList frames={entry.frames.map((location) => ({ name: locationName(series.code, location), isInlined: false }))} />
    </details>
  );
}

function momentText(model: ChartModel, row: number): string {
  const { kind } = model;
  const format = chartFormat(kind);
  const total = model.total[row] ?? null;
  const old = model.old?.[row] ?? null;
  const rss = model.rss?.[row] ?? null;
  const highest = model.highest?.[row] ?? null;
  const beside = (value: number | null, errors: readonly (number | null)[] | null): string => (value === null ? '' : errorBeside(value, errors?.[row]));
  const when = `${kind.isState ? 'at' : 'until'} ${formatMs(model.timesMs[row] ?? 0)}`;
  return [
    `${when}: ${total === null ? 'ended' : `${format(total)}${beside(total, model.errors.total)} in all`}`,
    ...(highest === null || highest === total ? [] : [`up to ${format(highest)}${beside(highest, model.errors.highest)} within the slice`]),
    ...(model.old === null ? [] : [`before ${old === null ? 'ended' : `${format(old)}${beside(old, model.errors.old)}`}`]),
    ...(total === null || old === null ? [] : [`change ${formatChange(total - old, format)}${errorBeside(Math.abs(total - old), changeError(model.errors.total?.[row] ?? 0, model.errors.old?.[row] ?? 0))}`]),
    ...(rss === null ? [] : [`RSS ${formatBytes(rss)}`]),
  ].join(', ');
}

export function ChartLegend(props: { readonly model: ChartModel; readonly hovered: number | null }): JSX.Element {
  const { model, hovered } = props;
  const { series, kind } = model;
  const address = useAddress();
  const colours = palette(useDarkness());
  const format = chartFormat(kind);
  const about = subjectOf(series, address);
  const shade = (index: number): number => (about >= 0 && about !== index ? ASIDE : 1);
  const value = (values: readonly number[], errors: readonly number[] | null, otherwise: string): string => {
    const then = hovered === null ? undefined : values[hovered];
    return then === undefined || hovered === null ? otherwise : `${format(then)}${errorBeside(then, errors?.[hovered])}`;
  };
  return (
    <section class="legend" aria-label="Legend">
      <p class="legend-time" data-testid="legend-time">
        {hovered !== null ? momentText(model, hovered) : kind.isRate ? 'Hover for values.' : 'The most of each; hover for a moment.'}
      </p>
      <ol>
        {series.top.map((entry, index) => (
          <li key={index} class={about >= 0 && about !== index ? 'legend-aside' : ''} {...(about === index ? { 'aria-current': 'true' as const } : {})}>
            <span class="legend-colour" style={{ background: colours.series(index, shade(index)) }} />
            <span class="legend-value" title={hovered === null ? 'what it was ranked by' : 'then'}>
              {value(model.top[index] ?? [], model.errors.top[index] ?? null, kind.isRate ? '' : format(entry.score))}
            </span>
            <span class="legend-name">
              <CodeLink name={locationName(series.code, entry.location)} />
              <Frames series={series} entry={entry} />
            </span>
          </li>
        ))}
        <li>
          <span class="legend-colour legend-rest" />
          <span class="legend-value">{value(model.rest, model.errors.rest, '')}</span>
          <span>{series.top.length === 0 ? 'everything that passes' : 'all others'}</span>
        </li>
      </ol>
    </section>
  );
}
