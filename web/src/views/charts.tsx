// Consumed, allocations, their rate, temporary allocations and allocated bytes over time: areas of
// the largest call sites or stacks, the total, RSS, and the total of the compared recording.
// Dragging puts a time range into the filter, a click the heap at that time.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { series as seriesAnswer, type Series } from '../api/answers';
import { inReport } from '../api/report-file';
import { formatBytes, formatMs } from '../base/format';
import { parseTime, timeText, TIME_EXAMPLE } from '../model/block-range';
import { errorBeside } from '../model/cost';
import { chartKind, knownCharts } from '../model/over-time';
import { timePicture } from '../render/time-picture';
import { BLOCK_FIELDS, comparesFiles, TIME_FIELDS, type Address } from '../state/address';
import { isFilteredBeyond } from '../state/filter-reach';
import { filterTime, go, showMoment } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { chartParams } from '../state/questions';
import { ChartLegend } from './chart-legend';
import { chartCsv, chartModel, chartSpec, legendEntries } from './charts-model';
import { MarkList } from './mark-list';
import { ChartBox } from './parts/chart-box';
import { Choice, ToggleButton } from './parts/controls';
import { useCapability, useMeta } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { useKnows } from './parts/unknown-costs';
import { PictureButtons } from './parts/picture-buttons';
import { useSaveFile } from './parts/save-file';
import { cssVariable, useDarkness } from './parts/theme-hook';
import './charts.css';

const TOPS = ['0', '5', '10', '20', '50'] as const;

/** Whether RSS is so much larger than the heap that the heap would be invisible beside it. */
function dwarfs(series: Series): boolean {
  const highest = series.rss.rss_bytes.reduce((high, bytes) => Math.max(high, bytes), 0);
  return highest > 3 * series.peak.bytes;
}

/** The reason why the chart's end differs from the leaked bytes. */
function SuppressedNote(props: { readonly series: Series }): JSX.Element | null {
  const { suppressed } = props.series.selection;
  return suppressed.live_bytes === 0 ? null : (
    <p data-testid="suppressed-note">
      {`Includes ${formatBytes(suppressed.live_bytes)} of suppressed leaks, which `}
      <button type="button" class="link" onClick={() => go({ view: 'leaks' })}>
        Leaks
      </button>
      {' does not count.'}
    </p>
  );
}

function Drawing(props: { readonly series: Series; readonly old: Series | null; readonly address: Address }): JSX.Element {
  const { series, old, address } = props;
  const dark = useDarkness();
  const canBrush = useCapability('time_range');
  const { marks } = useMeta();
  const saveFile = useSaveFile();
  const [hovered, setHovered] = useState<number | null>(null);
  const [wantsRss, setWantsRss] = useState<boolean | null>(null);
  const kind = chartKind(address.chart);
  const hasRss = kind.isState && series.rss.count > 0;
  const withRss = wantsRss ?? !dwarfs(series);
  const isWhole = !isFilteredBeyond(address, [...TIME_FIELDS, ...BLOCK_FIELDS]);
  const rssObeys = !isFilteredBeyond(address, [...TIME_FIELDS, ...BLOCK_FIELDS, 'process']);
  const model = useMemo(() => chartModel(series, old, kind, { rss: hasRss && withRss, isWhole }), [series, old, kind, hasRss, withRss, isWhole]);
  const spec = useMemo(() => chartSpec(model, marks, address, dark), [model, marks, dark, address.from_ms, address.to_ms, address.subject, address.subject_line]);
  return (
    <>
      <div class="charts-hint charts-top">
        <div class="soft">
          {`${kind.phrase}. `}
          {canBrush ? 'Drag to filter everything to a time range; click for the heap as it stood then.' : inReport() ? 'Time ranges need cairn analyze.' : 'This recording has no stacks by time: the areas and ranges are missing.'}
          {model.rss === null ? '' : ` The dashed line is RSS${rssObeys ? '' : ', which is not filtered'}.`}
          {model.old === null ? '' : ' The dotted line is the recording compared with.'}
          {model.errors.total === null ? '' : ' The total is between the thin lines in about 95 of 100 cases. Errors of parts do not add up to its own.'}
          {kind.value === 'live_bytes' ? <SuppressedNote series={series} /> : null}
        </div>
        {hasRss ? (
          <span class="toolbar">
            <ToggleButton isOn={withRss} label="RSS" title="resident size of the processes that pass, not filtered otherwise" onChange={setWantsRss} />
          </span>
        ) : null}
      </div>
      {model.oldProblem === '' ? null : <Notice>{model.oldProblem}</Notice>}
      <div class="charts-body">
        <ChartBox
          spec={spec}
          label={`Chart: ${kind.phrase}. The highest heap was ${formatBytes(series.peak.bytes)}${errorBeside(series.peak.bytes, series.peak.error)} after ${formatMs(series.peak.time_ms)}.`}
          events={{ hover: setHovered, brush: canBrush ? filterTime : null, click: canBrush ? showMoment : () => undefined }}
        />
        <ChartLegend model={model} hovered={hovered} />
      </div>
      <MarkList />
      <div class="toolbar">
        <PictureButtons
          name={kind.value}
          picture={() => timePicture(spec, `${kind.label}: ${kind.phrase}`, legendEntries(model, dark), cssVariable('--bg'))}
        />
        <button type="button" title="Save the numbers" onClick={() => saveFile(`${kind.value}.csv`, new Blob([chartCsv(model)], { type: 'text/csv' }))}>
          CSV
        </button>
      </div>
    </>
  );
}

function RangeForm(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const field = (name: 'from_ms' | 'to_ms', label: string): JSX.Element => (
    <label class="toolbar-label charts-range">
      {label}
      <input
        type="text"
        class="charts-number"
        placeholder={TIME_EXAMPLE}
        title={`A time after the start, such as ${TIME_EXAMPLE}`}
        value={address[name] === '' ? '' : timeText(Number(address[name]))}
        onChange={(e) => {
          const ms = parseTime(e.currentTarget.value);
          e.currentTarget.setAttribute('aria-invalid', String(ms === null));
          if (ms !== null) {
            go({ [name]: ms, zoom: '' });
          }
        }}
      />
    </label>
  );
  return (
    <>
      {field('from_ms', 'From')}
      {field('to_ms', 'to')}
    </>
  );
}

export function ChartsView(): JSX.Element {
  const address = useAddress();
  const hasSlices = useCapability('slices');
  const canBrush = useCapability('time_range');
  const kind = chartKind(address.chart);
  const knows = useKnows();
  const params = chartParams(address);
  const asked = useAsk(hasSlices ? 'series' : null, params, seriesAnswer);
  const isDiff = hasSlices && comparesFiles(address);
  const old = useAsk(isDiff ? 'series' : null, { ...params, top: '0', recording: 'old' }, seriesAnswer);
  if (!hasSlices) {
    return <Notice>This recording has no time slices, so there is nothing to chart.</Notice>;
  }
  return (
    <div class="view charts">
      <div class="toolbar" role="toolbar" aria-label="Charts">
        <Choice label="Chart" value={kind.value} options={knownCharts(knows)} onChange={(chart) => go({ chart })} />
        <label class="toolbar-label">
          Top
          <select value={address.top} onChange={(e) => go({ top: e.currentTarget.value })}>
            {TOPS.map((top) => (
              <option key={top} value={top}>
                {top}
              </option>
            ))}
          </select>
        </label>
        <Choice
          label="By"
          value={address.by}
          options={[
            { value: 'call_site', label: 'call sites' },
            { value: 'stack', label: 'stacks' },
          ]}
          onChange={(by) => go({ by })}
        />
        {canBrush ? <RangeForm address={address} /> : null}
      </div>
      {old.error === null ? null : <Notice bad>{`The recording compared with: ${old.error.message}.`}</Notice>}
      <Pane asked={asked} label="Charts">
        {(series) => <Drawing series={series} old={isDiff ? old.value : null} address={address} />}
      </Pane>
    </div>
  );
}
