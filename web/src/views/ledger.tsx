// What the resident size is made of, over time: anonymous memory, files, shared memory; and the heap beside it.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { ledger as ledgerAnswer, type Ledger } from '../api/answers';
import { at } from '../base/columns';
import { formatBytes, formatCount, formatMs } from '../base/format';
import { markText, type Mark } from '../model/mark';
import { stackUp } from '../model/stacked';
import { palette } from '../render/colour';
import type { LegendEntry } from '../render/picture';
import { timePicture } from '../render/time-picture';
import type { ChartSpec } from '../render/chart-spec';
import { useAddress, useAsk } from '../state/hooks';
import { ChartBox } from './parts/chart-box';
import { DataTable } from './parts/data-table';
import { useCapability, useMeta } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { PictureButtons } from './parts/picture-buttons';
import { cssVariable, useDarkness } from './parts/theme-hook';
import './ledger.css';

const PARTS = [
  { key: 'anonymous_bytes', label: 'Anonymous: heap, stacks and what the allocator keeps' },
  { key: 'file_bytes', label: 'Files: code and mapped data' },
  { key: 'shmem_bytes', label: 'Shared memory' },
] as const;

function specOf(ledger: Ledger, marks: readonly Mark[], isDark: boolean): ChartSpec {
  const { samples, peak_rss_ms, peak_rss_bytes } = ledger;
  const colours = palette(isDark);
  const edges = stackUp(PARTS.map((part) => ({ label: part.label, values: samples[part.key] })));
  return {
    timesMs: samples.time_ms,
    areas: edges.map((edge, index) => ({ edge, colour: colours.series(index) })),
    lines: [{ colour: cssVariable('--text'), width: 2, dash: [5, 4], values: samples.live_bytes }],
    isStepped: false,
    marked: null,
    marks: [
      { ms: peak_rss_ms, label: `peak RSS ${formatBytes(peak_rss_bytes)}` },
      ...marks.map((mark) => ({ ms: mark.time_ms, label: markText(mark) })),
    ],
    formatValue: formatBytes,
    isBinary: true,
    formatTime: formatMs,
    ink: { text: cssVariable('--text'), grid: cssVariable('--line'), mark: cssVariable('--text-soft'), range: 'transparent' },
  };
}

function legendEntries(isDark: boolean): readonly LegendEntry[] {
  const colours = palette(isDark);
  return [
    ...PARTS.map((part, index) => ({ colour: colours.series(index), text: part.label })),
    { colour: cssVariable('--text'), text: 'Live heap (dashed)' },
  ];
}

function LedgerLegend(props: { readonly ledger: Ledger; readonly row: number }): JSX.Element {
  const { samples } = props.ledger;
  const { row } = props;
  const colours = palette(useDarkness());
  const optional = (value: number | null | undefined): string => (value === null || value === undefined ? 'unknown' : formatBytes(value));
  return (
    <section class="ledger-legend" aria-label="At the moment pointed at">
      <h2>{`After ${formatMs(at(samples.time_ms, row))}`}</h2>
      <dl>
        <div>
          <dt>RSS</dt>
          <dd>{formatBytes(at(samples.rss_bytes, row))}</dd>
        </div>
        {PARTS.map((part, index) => (
          <div key={part.key}>
            <dt>
              <span class="legend-colour" style={{ background: colours.series(index) }} /> {part.label}
            </dt>
            <dd>{formatBytes(at(samples[part.key], row))}</dd>
          </div>
        ))}
        <div>
          <dt>Live heap (dashed)</dt>
          <dd>{optional(samples.live_bytes[row])}</dd>
        </div>
        <div>
          <dt>Anonymous beyond the heap</dt>
          <dd>{optional(samples.other_anonymous_bytes[row])}</dd>
        </div>
        <div>
          <dt>Swapped out</dt>
          <dd>{formatBytes(at(samples.swap_bytes, row))}</dd>
        </div>
        <div>
          <dt>Page faults, minor and major</dt>
          <dd>{`${formatCount(at(samples.minor_faults, row))}, ${formatCount(at(samples.major_faults, row))}`}</dd>
        </div>
      </dl>
    </section>
  );
}

function Mappings(props: { readonly ledger: Ledger }): JSX.Element {
  const { mappings } = props.ledger;
  const hasMappings = useCapability('mappings');
  const [selected, setSelected] = useState(-1);
  if (!hasMappings) {
    return <Notice>This recording has no table of mappings.</Notice>;
  }
  return (
    <DataTable
      label="Mappings"
      columns={[
        { key: 'path', title: 'Mapping', widthPx: 300, grows: true, cell: (row) => <span class="mono">{mappings.path[row]}</span> },
        { key: 'kind', title: 'Kind', widthPx: 130, cell: (row) => mappings.kind[row] ?? '' },
        { key: 'rss', title: 'RSS', widthPx: 110, numeric: true, cell: (row) => <span class="ledger-number">{formatBytes(at(mappings.rss_bytes, row))}</span> },
        { key: 'virtual', title: 'Virtual', widthPx: 110, numeric: true, cell: (row) => <span class="ledger-number">{formatBytes(at(mappings.virtual_bytes, row))}</span> },
      ]}
      count={mappings.count}
      selected={selected}
      onSelect={setSelected}
    />
  );
}

function Drawing(props: { readonly ledger: Ledger }): JSX.Element {
  const { ledger } = props;
  const dark = useDarkness();
  const [hovered, setHovered] = useState<number | null>(null);
  const { marks } = useMeta();
  const spec = useMemo(() => specOf(ledger, marks, dark), [ledger, marks, dark]);
  const highest = Math.max(ledger.samples.time_ms.indexOf(ledger.peak_rss_ms), 0);
  if (ledger.samples.count === 0) {
    return <Notice>The resident size was not sampled.</Notice>;
  }
  return (
    <>
      <div class="ledger-body">
        <ChartBox
          spec={spec}
          label={`Resident size over time, highest ${formatBytes(ledger.peak_rss_bytes)}`}
          events={{ hover: setHovered, brush: () => undefined, click: () => undefined }}
        />
        <LedgerLegend ledger={ledger} row={hovered ?? highest} />
      </div>
      <div class="toolbar">
        <PictureButtons name="rss" picture={() => timePicture(spec, 'Resident size over time', legendEntries(dark), cssVariable('--bg'))} />
      </div>
      <Mappings ledger={ledger} />
    </>
  );
}

export function LedgerView(): JSX.Element {
  const address = useAddress();
  const hasRss = useCapability('rss');
  const asked = useAsk(hasRss ? 'ledger' : null, { process: address.process }, ledgerAnswer);
  if (!hasRss) {
    return <Notice>The resident size was not sampled in this recording.</Notice>;
  }
  return (
    <div class="view">
      <Pane asked={asked} label="RSS">
        {(ledger) => <Drawing ledger={ledger} />}
      </Pane>
    </div>
  );
}
