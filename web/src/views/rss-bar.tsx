// The highest RSS as one bar: the heap and the other parts. Links to the view that explains it.
import type { JSX } from 'preact';
import { rss as rssAnswer, type Rss } from '../api/answers';
import { at } from '../base/columns';
import { formatBytes, formatCount, formatMs, formatPercent } from '../base/format';
import { kindsAt, splitParts } from '../model/rss-breakdown';
import { palette } from '../render/colour';
import { go } from '../state/app-state';
import { isFilteredBeyond } from '../state/filter-reach';
import { useAddress, useAsk } from '../state/hooks';
import { useCapability, useComparison } from './parts/meta-context';
import { useDarkness } from './parts/theme-hook';
import './rss-bar.css';

interface Part {
  readonly label: string;
  readonly bytes: number;
}

interface Moment {
  readonly ms: number;
  readonly rss: number;
  /** Empty: unknown. */
  readonly parts: readonly Part[];
}

/** The parts of the sample at `row`. */
function partsAt(answer: Rss, row: number): readonly Part[] {
  const { samples } = answer;
  const kinds = kindsAt(samples, row);
  if (kinds === null) {
    return [];
  }
  const other = samples.other_anonymous_bytes[row] ?? null;
  const { anonymous } = kinds;
  const heap: readonly Part[] =
    other === null
      ? [{ label: 'anonymous', bytes: anonymous }]
      : [
          { label: 'live heap blocks', bytes: anonymous - other },
          { label: 'other anonymous memory', bytes: other },
        ];
  return [
    ...heap,
    { label: 'files', bytes: kinds.file },
    { label: 'shared memory', bytes: kinds.shmem },
  ];
}

function highestRow(answer: Rss): number {
  const { rss_bytes } = answer.samples;
  return rss_bytes.reduce((best, value, row) => (value > at(rss_bytes, best) ? row : best), 0);
}

/** The memory snapshot at the highest RSS if there is one, else the highest sample. */
function highest(answer: Rss): Moment {
  const { breakdowns, samples } = answer;
  const look = breakdowns.is_peak.indexOf(1);
  if (look >= 0) {
    return { ms: at(breakdowns.time_ms, look), rss: at(breakdowns.rss_bytes, look), parts: splitParts(answer, look) };
  }
  const row = highestRow(answer);
  return { ms: at(samples.time_ms, row), rss: at(samples.rss_bytes, row), parts: partsAt(answer, row) };
}

/** A breakdown belongs to the moment of its memory snapshot, which need not be the peak. */
function headText(answer: Rss, ms: number, rss: number, hasParts: boolean): string {
  const { peak_rss_bytes: peak, peak_rss_ms: peakMs } = answer;
  if (!hasParts) {
    return `RSS ${formatBytes(rss)} after ${formatMs(ms)}; what it consists of is unknown`;
  }
  return `RSS breakdown at ${formatMs(ms)}: ${formatBytes(rss)}${peak > rss ? `; the peak was ${formatBytes(peak)} at ${formatMs(peakMs)}` : ', the peak'}`;
}

function Drawing(props: { readonly answer: Rss; readonly prefix: string }): JSX.Element {
  const { answer, prefix } = props;
  const colours = palette(useDarkness());
  const { ms, rss, parts: all } = highest(answer);
  const isUnfiltered = !isFilteredBeyond(useAddress(), ['process']);
  const parts = all.map((part, index) => ({ ...part, colour: colours.series(index) })).filter((part) => part.bytes > 0);
  return (
    <button type="button" class="rss" data-testid={prefix === '' ? 'rss-bar' : 'rss-bar-old'} onClick={() => go({ view: 'rss' })}>
      <span class="rss-head">
        {prefix}
        {headText(answer, ms, rss, parts.length > 0)}
        {isUnfiltered ? '' : '; whole recording, not filtered'}
      </span>
      {parts.length === 0 ? null : (
        <>
          <span class="rss-parts" aria-hidden="true">
            {parts.map((part) => (
              <span
                key={part.label}
                title={`${part.label}: ${formatBytes(part.bytes)}`}
                style={{ width: `${((part.bytes / Math.max(rss, 1)) * 100).toFixed(2)}%`, background: part.colour }}
              />
            ))}
          </span>
          <span class="rss-legend">
            {parts.map((part) => (
              <span key={part.label} title={`${formatCount(part.bytes)} B`}>
                <span class="legend-colour rss-colour" style={{ background: part.colour }} />
                {` ${part.label} ${formatBytes(part.bytes)}, ${formatPercent(part.bytes, rss)}`}
              </span>
            ))}
          </span>
        </>
      )}
    </button>
  );
}

/** In a comparison a second bar shows the other recording. */
export function RssBar(): JSX.Element | null {
  const address = useAddress();
  const hasRss = useCapability('rss');
  const isDiff = useComparison();
  const asked = useAsk(hasRss ? 'rss' : null, { process: address.process }, rssAnswer);
  const old = useAsk(isDiff ? 'rss' : null, { recording: 'old' }, rssAnswer);
  return (
    <>
      {asked.value === null || asked.value.samples.count === 0 ? null : <Drawing answer={asked.value} prefix="" />}
      {!isDiff || old.value === null || old.value.samples.count === 0 ? null : <Drawing answer={old.value} prefix="Before: " />}
    </>
  );
}
