// RSS over time: the breakdown (rss-breakdown.tsx), or by kind of page beside the heap; and the
// mappings of one moment.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { rss as rssAnswer, type Rss } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatCount, formatCountOf, formatMs } from '../base/format';
import { locationName } from '../model/code';
import { markText, type Mark } from '../model/mark';
import { kindsAt } from '../model/rss-breakdown';
import { stackUp } from '../model/stacked';
import { palette } from '../render/colour';
import type { LegendEntry } from '../render/picture';
import { timePicture } from '../render/time-picture';
import type { ChartSpec } from '../render/chart-spec';
import { comparesFiles } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { rssParams } from '../state/questions';
import { RssBar } from './rss-bar';
import { RssBreakdown } from './rss-breakdown';
import { ChartBox } from './parts/chart-box';
import { Choice } from './parts/controls';
import { DataTable, inOrder, textColumn, type Column } from './parts/data-table';
import { useCapability, useMeta } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { PictureButtons } from './parts/picture-buttons';
import { cssVariable, useDarkness } from './parts/theme-hook';
import { Mappings, numberColumn, siteColumn } from './rss-mappings';
import './rss.css';

const PARTS = [
  { key: 'anonymous', label: 'Anonymous: heap, thread stacks, kept by the allocator' },
  { key: 'file', label: 'Files' },
  { key: 'shmem', label: 'Shared memory' },
] as const;

/** The kinds of pages, if the file distinguishes them. */
function knownParts({ samples }: Rss): readonly (typeof PARTS)[number][] {
  return samples.time_ms.some((_, row) => kindsAt(samples, row) !== null) ? PARTS : [];
}

function specOf(answer: Rss, marks: readonly Mark[], isDark: boolean): ChartSpec {
  const { samples, peak_rss_ms, peak_rss_bytes } = answer;
  const colours = palette(isDark);
  const parts = knownParts(answer);
  const edges = stackUp(parts.map((part) => ({ label: part.label, values: samples.time_ms.map((_, row) => kindsAt(samples, row)?.[part.key] ?? 0) })));
  return {
    timesMs: samples.time_ms,
    areas: edges.map((edge, index) => ({ edge, colour: colours.series(index) })),
    lines: [
      ...(parts.length === 0 ? [{ colour: cssVariable('--text'), width: 1.5, values: samples.rss_bytes }] : []),
      { colour: cssVariable('--text'), width: 2, dash: [5, 4], values: samples.live_bytes },
    ],
    isStepped: false,
    marked: null,
    marks: [
      { ms: peak_rss_ms, label: `peak RSS ${formatBytes(peak_rss_bytes)}`, isMain: true },
      ...marks.map((mark) => ({ ms: mark.time_ms, label: markText(mark) })),
    ],
    formatValue: formatBytes,
    isBinary: true,
    formatTime: formatMs,
    ink: { text: cssVariable('--text'), grid: cssVariable('--line'), mark: cssVariable('--text-soft'), range: 'transparent', background: cssVariable('--bg') },
  };
}

function legendEntries(answer: Rss, isDark: boolean): readonly LegendEntry[] {
  const colours = palette(isDark);
  const parts = knownParts(answer);
  return [
    ...(parts.length === 0 ? [{ colour: cssVariable('--text'), text: 'RSS' }] : []),
    ...parts.map((part, index) => ({ colour: colours.series(index), text: part.label })),
    { colour: cssVariable('--text'), text: 'Live heap (dashed)' },
  ];
}

function SamplesLegend(props: { readonly answer: Rss; readonly row: number }): JSX.Element {
  const { samples } = props.answer;
  const { row } = props;
  const colours = palette(useDarkness());
  const kinds = kindsAt(samples, row);
  const optional = (value: number | null | undefined, format = formatBytes): string => (value === null || value === undefined ? 'unknown' : format(value));
  return (
    <section class="breakdown-legend" aria-label="At the moment pointed at">
      <h2>{`After ${formatMs(at(samples.time_ms, row))}`}</h2>
      <dl>
        <div>
          <dt>RSS</dt>
          <dd>{formatBytes(at(samples.rss_bytes, row))}</dd>
        </div>
        {kinds === null ? null : PARTS.map((part, index) => (
          <div key={part.key}>
            <dt>
              <span class="legend-colour" style={{ background: colours.series(index) }} /> {part.label}
            </dt>
            <dd>{formatBytes(kinds[part.key])}</dd>
          </div>
        ))}
        <div>
          <dt>Live heap (dashed)</dt>
          <dd>{optional(samples.live_bytes[row])}</dd>
        </div>
        {kinds === null ? null : (
          <>
            <div>
              <dt>Anonymous beyond the heap</dt>
              <dd>{optional(samples.other_anonymous_bytes[row])}</dd>
            </div>
            <div>
              <dt>Swapped out</dt>
              <dd>{optional(samples.swap_bytes[row])}</dd>
            </div>
            <div>
              <dt>Page faults, minor and major</dt>
              <dd>{`${optional(samples.minor_faults[row], formatCount)}, ${optional(samples.major_faults[row], formatCount)}`}</dd>
            </div>
          </>
        )}
      </dl>
      {kinds === null ? <p class="soft">This file says how much was resident, not what pages they were.</p> : null}
    </section>
  );
}

/** The heap of each allocator at the chosen moment, if there are several. */
function Allocators(props: { readonly answer: Rss }): JSX.Element | null {
  const { allocators, moment_ms } = props.answer;
  const [selected, setSelected] = useState(-1);
  const rows = range(allocators.count).filter((row) => allocators.time_ms[row] === moment_ms);
  if (rows.length < 2) {
    return null;
  }
  const columns: readonly Column[] = [
    textColumn({ key: 'name', title: 'Allocator', widthPx: 110, narrowPx: 90 }, (row) => (allocators.module[row] === '' ? 'unknown' : allocators.name[row] ?? '')),
    textColumn({ key: 'module', title: 'Module', widthPx: 240, narrowPx: 120, grows: true }, (row) => allocators.module[row] ?? '', (path) => <span class="mono">{path}</span>),
    numberColumn('live', 'Live', 'bytes', 96, (row) => at(allocators.live_bytes, row)),
    numberColumn('rounding', 'Rounding', 'bytes', 96, (row) => at(allocators.rounding_bytes, row)),
    numberColumn('kept', 'Kept', 'bytes', 96, (row) => at(allocators.kept_bytes, row)),
    numberColumn('rest', 'Not explained', 'bytes', 120, (row) => at(allocators.rest_bytes, row)),
  ];
  return (
    <section data-testid="allocators">
      <h2>Allocators</h2>
      <DataTable label="Heap by allocator" columns={inOrder(columns, rows)} count={rows.length} selected={selected} onSelect={setSelected} />
    </section>
  );
}

/** Which blocks keep almost empty pages of the heap resident at the chosen moment. */
function Survivors(props: { readonly answer: Rss }): JSX.Element | null {
  const { breakdowns, survivors, code, moment_ms } = props.answer;
  const [selected, setSelected] = useState(-1);
  const row = breakdowns.time_ms.indexOf(moment_ms ?? -1);
  const rows = range(survivors.count).filter((survivor) => survivors.time_ms[survivor] === moment_ms);
  if (row < 0 || rows.length === 0) {
    return null;
  }
  const columns: readonly Column[] = [
    siteColumn({ title: 'Call site', widthPx: 280, narrowPx: 180, grows: true }, (survivor) => locationName(code, survivors.location[survivor])),
    numberColumn('held', 'Holds', 'bytes', 96, (survivor) => at(survivors.held_bytes, survivor)),
    numberColumn('blocks', 'Blocks', '', 96, (survivor) => at(survivors.blocks, survivor)),
    numberColumn('bytes', 'Of', 'bytes', 96, (survivor) => at(survivors.block_bytes, survivor)),
    numberColumn('oldest', 'Oldest from', 'ms', 110, (survivor) => at(survivors.oldest_ms, survivor)),
    numberColumn('newest', 'Newest from', 'ms', 110, (survivor) => at(survivors.newest_ms, survivor)),
  ];
  return (
    <section data-testid="survivors">
      <h2>Fragmentation</h2>
      <p class="soft">
        {`About ${formatBytes(at(breakdowns.sparse_page_bytes, row))} of the heap are almost empty pages: blocks of ${formatBytes(at(breakdowns.sparse_block_bytes, row))} keep them resident. About ${formatBytes(at(breakdowns.empty_page_bytes, row))} are pages without a live block, which the allocator may return.`}
      </p>
      <DataTable
        label="Call sites that keep almost empty pages resident"
        columns={inOrder(columns, rows)}
        count={rows.length}
        selected={selected}
        onSelect={setSelected}
      />
    </section>
  );
}

function Samples(props: { readonly answer: Rss }): JSX.Element {
  const { answer } = props;
  const dark = useDarkness();
  const [hovered, setHovered] = useState<number | null>(null);
  const { marks } = useMeta();
  const spec = useMemo(() => specOf(answer, marks, dark), [answer, marks, dark]);
  const highest = Math.max(answer.samples.time_ms.indexOf(answer.peak_rss_ms), 0);
  return (
    <>
      <div class="breakdown-body">
        <ChartBox
          spec={spec}
          label={`Resident size over time, highest ${formatBytes(answer.peak_rss_bytes)}`}
          events={{ hover: setHovered, brush: null, click: () => undefined }}
        />
        <SamplesLegend answer={answer} row={hovered ?? highest} />
      </div>
      <div class="toolbar">
        <PictureButtons name="rss" picture={() => timePicture(spec, 'Resident size over time', legendEntries(answer, dark), cssVariable('--bg'))} />
      </div>
    </>
  );
}

const WAYS = [
  { value: '', label: 'What it is for' },
  { value: 'samples', label: 'Kind of page' },
] as const;

function Drawing(props: { readonly answer: Rss; readonly isSplit: boolean }): JSX.Element {
  const { answer } = props;
  const hasSplits = answer.breakdowns.count > 0;
  const isSplit = hasSplits && (props.isSplit || answer.samples.count === 0);
  if (answer.samples.count === 0 && !hasSplits) {
    return <Notice>The resident size was not sampled.</Notice>;
  }
  return (
    <>
      {hasSplits ? (
        <div class="toolbar">
          <Choice label="Split by" value={isSplit ? '' : 'samples'} options={WAYS} onChange={(value) => go({ rss_by: value })} />
          <span class="soft">
            {isSplit ? `The bars are what RSS consisted of at ${formatCountOf(answer.breakdowns.count, 'moment')}, the pale steps the last one known; the line is RSS. Hover for values, click for the mappings of a moment.` : 'From the samples, many a second: what pages they are, and the live heap beside them.'}
          </span>
        </div>
      ) : null}
      {isSplit ? <RssBreakdown answer={answer} /> : <Samples answer={answer} />}
      <Allocators answer={answer} />
      <Survivors answer={answer} />
      <Mappings answer={answer} />
    </>
  );
}

export function RssView(): JSX.Element {
  const address = useAddress();
  const hasRss = useCapability('rss');
  const asked = useAsk(hasRss ? 'rss' : null, rssParams(address), rssAnswer);
  if (!hasRss) {
    return <Notice>The resident size was not sampled in this recording.</Notice>;
  }
  return (
    <div class="view">
      {comparesFiles(address) ? <RssBar /> : null}
      <Pane asked={asked} label="RSS">
        {(answer) => <Drawing answer={answer} isSplit={address.rss_by !== 'samples'} />}
      </Pane>
    </div>
  );
}
