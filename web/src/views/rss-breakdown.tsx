// RSS over time, split by purpose: live heap, allocator overhead, stacks, files and so on. Memory
// snapshots are taken now and then; a click selects one and lists its mappings.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Rss } from '../api/answers';
import { inReport } from '../api/report-file';
import { at, range } from '../base/columns';
import { formatBytes, formatMs, formatPercent } from '../base/format';
import { lookBars, mergeTimes, nearest, placeAt, splitParts } from '../model/rss-breakdown';
import { markText, type Mark } from '../model/mark';
import { stackUp } from '../model/stacked';
import type { ChartSpec } from '../render/chart-spec';
import { lastAt } from '../model/time-strip';
import { palette } from '../render/colour';
import { timePicture } from '../render/time-picture';
import { go } from '../state/app-state';
import { useAddress } from '../state/hooks';
import { ChartBox } from './parts/chart-box';
import { useMeta } from './parts/meta-context';
import { PictureButtons } from './parts/picture-buttons';
import { cssVariable, useDarkness } from './parts/theme-hook';

function specOf(answer: Rss, marks: readonly Mark[], shownMs: number, isDark: boolean): ChartSpec {
  const { breakdowns, samples, kinds } = answer;
  const colours = palette(isDark);
  const bars = lookBars(breakdowns.time_ms, Math.max(at(breakdowns.time_ms, breakdowns.count - 1), at(samples.time_ms, samples.count - 1)));
  const times = mergeTimes(bars.times, samples.time_ms);
  const rows = times.map(bars.rowAt);
  const inBars = (values: readonly number[]): readonly (number | null)[] => rows.map((row) => (row < 0 ? null : at(values, row)));
  const last = times.map((time) => lastAt(breakdowns.time_ms, time));
  const steps = (values: readonly number[]): readonly (number | null)[] => last.map((row) => (row < 0 ? null : at(values, row)));
  const edges = stackUp(kinds.key.map((key) => ({ label: key, values: breakdowns.columns[`${key}_bytes`] ?? [] })));
  return {
    timesMs: times,
    areas: [
      ...edges.map((edge, index) => ({ edge: inBars(edge), hasGaps: true, colour: colours.series(index) })),
      // Higher areas are painted first: the pale ones, below the bars.
      ...edges.map((edge, index) => ({ edge: steps(edge), isStep: true, colour: colours.pale(index) })),
    ],
    lines: [
      { colour: cssVariable('--text'), width: 1.5, values: placeAt(times, samples.time_ms, samples.rss_bytes) },
      { colour: cssVariable('--text'), width: 2, values: inBars(breakdowns.requested_bytes), hasGaps: true },
    ],
    isStepped: false,
    marked: { fromMs: shownMs, toMs: shownMs },
    marks: [
      ...range(breakdowns.count).filter((row) => breakdowns.is_peak[row] === 1).map((row) => ({ ms: at(breakdowns.time_ms, row), label: `breakdown of ${formatBytes(at(breakdowns.rss_bytes, row))}`, isMain: true })),
      ...(breakdowns.rss_bytes.some((bytes) => bytes >= answer.peak_rss_bytes) ? [] : [{ ms: answer.peak_rss_ms, label: `peak RSS ${formatBytes(answer.peak_rss_bytes)}`, isMain: true }]),
      ...marks.map((mark) => ({ ms: mark.time_ms, label: markText(mark) })),
    ],
    formatValue: formatBytes,
    isBinary: true,
    formatTime: formatMs,
    ink: { text: cssVariable('--text'), grid: cssVariable('--line'), mark: cssVariable('--text-soft'), range: cssVariable('--accent'), background: cssVariable('--bg') },
  };
}

function Legend(props: { readonly answer: Rss; readonly row: number }): JSX.Element {
  const { answer, row } = props;
  const { breakdowns } = answer;
  const colours = palette(useDarkness());
  const rss = at(breakdowns.rss_bytes, row);
  return (
    <section class="breakdown-legend" aria-label="At the moment pointed at" tabIndex={0} data-testid="breakdown-legend">
      <h2>{`After ${formatMs(at(breakdowns.time_ms, row))}`}</h2>
      <dl>
        <div>
          <dt>RSS</dt>
          <dd>{formatBytes(rss)}</dd>
        </div>
        {splitParts(answer, row).map((part) => (
          <div key={part.key}>
            <dt>
              <span class="legend-colour" style={{ background: colours.series(part.index) }} /> {part.label}
            </dt>
            <dd>
              {formatBytes(part.bytes)} <span class="soft breakdown-share">{formatPercent(part.bytes, rss)}</span>
            </dd>
          </div>
        ))}
        <div>
          <dt>Heap asked for, resident or not (line in the bar)</dt>
          <dd>{formatBytes(at(breakdowns.requested_bytes, row))}</dd>
        </div>
        <div>
          <dt>Swapped out</dt>
          <dd>{formatBytes(at(breakdowns.swap_bytes, row))}</dd>
        </div>
      </dl>
      {breakdowns.live_is_estimate[row] === 1 ? <p class="soft">The resident pages of the heap could not be read, or the heap changed meanwhile: its kinds are estimates.</p> : null}
    </section>
  );
}

/** The moments with known mappings, as another way to select one. */
function MomentSelect(props: { readonly answer: Rss }): JSX.Element | null {
  const { breakdowns, moment_ms } = props.answer;
  const rows = range(breakdowns.count).filter((row) => breakdowns.has_mappings[row] === 1);
  if (rows.length < 2 || inReport()) {
    return null;
  }
  return (
    <label class="toolbar-label">
      Mappings
      <select value={String(moment_ms ?? '')} onChange={(event) => go({ moment: event.currentTarget.value })}>
        {rows.map((row) => (
          <option key={row} value={String(at(breakdowns.time_ms, row))}>
            {`after ${formatMs(at(breakdowns.time_ms, row))}: ${formatBytes(at(breakdowns.rss_bytes, row))}${breakdowns.is_peak[row] === 1 ? ', the highest of these' : ''}`}
          </option>
        ))}
      </select>
    </label>
  );
}

export function RssBreakdown(props: { readonly answer: Rss }): JSX.Element {
  const { answer } = props;
  const { breakdowns } = answer;
  const address = useAddress();
  const dark = useDarkness();
  const { marks } = useMeta();
  const [hovered, setHovered] = useState<number | null>(null);
  const peak = Math.max(breakdowns.is_peak.indexOf(1), 0);
  const shown = address.moment === '' ? peak : nearest(breakdowns.time_ms, Number(address.moment), () => true);
  const shownMs = at(breakdowns.time_ms, shown);
  const spec = useMemo(() => specOf(answer, marks, shownMs, dark), [answer, marks, shownMs, dark]);
  const colours = palette(dark);
  const legend = answer.kinds.phrase.map((text, index) => ({ colour: colours.series(index), text }));
  const choose = (ms: number): void => {
    const row = nearest(breakdowns.time_ms, ms, (candidate) => breakdowns.has_mappings[candidate] === 1);
    if (row >= 0 && !inReport()) {
      go({ moment: String(at(breakdowns.time_ms, row)) });
    }
  };
  return (
    <>
      <div class="breakdown-body">
        <ChartBox
          spec={spec}
          label={`Resident size over time by what it is for, highest ${formatBytes(answer.peak_rss_bytes)}`}
          events={{ hover: setHovered, brush: null, click: choose }}
        />
        <Legend answer={answer} row={hovered === null ? shown : nearest(breakdowns.time_ms, at(spec.timesMs, hovered), () => true)} />
      </div>
      <div class="toolbar">
        <MomentSelect answer={answer} />
        <PictureButtons name="rss" picture={() => timePicture(spec, 'Resident size over time', [...legend, { colour: cssVariable('--text'), text: 'RSS; in the bars, heap asked for' }], cssVariable('--bg'))} />
      </div>
    </>
  );
}
