// The findings as cards: what deserves attention, the responsible call site, how sure it is, and
// the view that shows it. The sentences are the server's.
import type { JSX } from 'preact';
import type { Summary } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatCountOf, formatPercent } from '../base/format';
import { locationName, type CodeName } from '../model/code';
import { errorBeside, type CostKey } from '../model/cost';
import type { Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress } from '../state/hooks';
import { CodeLink } from './parts/code-label';
import { useHasEnded } from './parts/live-when';
import { Sentence } from './parts/sentence';
import './findings.css';

interface Link {
  readonly label: string;
  readonly to: (name: CodeName) => Partial<Address>;
}

interface Kind {
  readonly title: string;
  /** What the bytes of the finding are a part of. */
  readonly whole: string;
  readonly links: readonly Link[];
  /** Of the lines in the source of its call site. */
  readonly cost?: CostKey;
}

const FLAME: Link = { label: 'Flame graph', to: (name) => ({ view: 'flame', cost: 'peak_bytes', search: name.full }) };
const LEAKS: Link = { label: 'Leaks', to: () => ({ view: 'leaks', leaks_by: 'call_site' }) };
const RSS: Link = { label: 'RSS', to: () => ({ view: 'rss' }) };

/** By what the report says to look at: churn is of three sorts. */
const CHURN: Readonly<Record<string, Link>> = {
  '--histogram': { label: 'Lifetimes', to: (name) => ({ view: 'sizes', histogram: 'lifetimes', function: name.full }) },
  '-a': { label: 'Bottom-up', to: () => ({ view: 'bottom-up', cost: 'allocated_bytes' }) },
};

const KINDS: Readonly<Record<string, Kind>> = {
  peak: { title: 'Holds the peak', whole: 'of the peak', links: [{ label: 'Why the peak', to: () => ({ view: 'peak' }) }, FLAME], cost: 'peak_bytes' },
  growth: { title: 'Grows', whole: 'of what is live at the end', links: [LEAKS, { label: 'Over time', to: () => ({ view: 'charts' }) }], cost: 'leaked_bytes' },
  unfreed: { title: 'Not freed', whole: 'of what is live at the end', links: [LEAKS], cost: 'leaked_bytes' },
  churn: { title: 'Churn', whole: 'of all allocated bytes', links: [{ label: 'Bottom-up', to: () => ({ view: 'bottom-up', cost: 'temporary' }) }], cost: 'allocated_bytes' },
  rss: { title: 'RSS beyond the heap', whole: 'of RSS', links: [RSS] },
  sparse: { title: 'Fragmented heap', whole: 'of RSS', links: [RSS] },
  uneven: { title: 'Unlike its siblings', whole: 'of the peak', links: [{ label: 'Threads', to: () => ({ view: 'threads' }) }] },
  unseen: { title: 'Heap not seen', whole: 'of the anonymous memory', links: [RSS] },
};

/** Of processes that have not ended: what is live is not leaked yet. */
const LIVE_KINDS: Readonly<Record<string, Pick<Kind, 'title' | 'whole'>>> = {
  growth: { title: 'Grows', whole: 'of what is live' },
  unfreed: { title: 'Not freed so far', whole: 'of what is live' },
};

const SURE: Readonly<Record<string, string>> = {
  high: 'certain',
  medium: 'likely',
  low: 'an estimate',
};

/** Cards in sight; the others unfold. */
const MOST = 4;

function Card(props: { readonly summary: Summary; readonly row: number }): JSX.Element {
  const { findings, code } = props.summary;
  const { items } = findings;
  const { row } = props;
  const id = items.kind[row] ?? '';
  const kind = { ...(KINDS[id] ?? { title: id, whole: 'of all', links: [] }), ...(useHasEnded() ? {} : LIVE_KINDS[id]) };
  const name = locationName(code, items.location[row]);
  const bytes = at(items.bytes, row);
  const whole = at(items.whole_bytes, row);
  const churn = id === 'churn' ? CHURN[items.look[row] ?? ''] : undefined;
  const links = (churn === undefined ? kind.links : [churn]).filter((link) => link.to(name).view !== 'peak' || findings.peak_rise !== null);
  return (
    <li class={`card card-${id}`} data-testid={`finding-${id}`}>
      <h2 class="card-title">
        {kind.title}
        <span class="card-sure">{SURE[items.confidence[row] ?? ''] ?? items.confidence[row]}</span>
      </h2>
      <p class="card-figure">
        <span>
          {items.lower_limit?.[row] === 1 ? `at least ${formatBytes(bytes)}` : formatBytes(bytes)}
          {errorBeside(bytes, items.bytes_error?.[row])}
        </span>
        {whole === 0 ? null : <span class="card-share">{`${formatPercent(bytes, whole)} ${kind.whole}`}</span>}
      </p>
      <span class="card-track" aria-hidden="true">
        <span class="card-bar" style={{ width: `${(Math.min(bytes / Math.max(whole, 1), 1) * 100).toFixed(2)}%` }} />
      </span>
      {name.id === null ? null : <CodeLink name={name} {...(kind.cost === undefined ? {} : { cost: kind.cost })} />}
      <p class="card-sentence">
        <Sentence text={items.sentence[row] ?? ''} />
      </p>
      <p class="card-links">
        {links.map((link) => (
          <button key={link.label} type="button" onClick={() => go(link.to(name))}>
            {link.label}
          </button>
        ))}
      </p>
    </li>
  );
}

export function FindingCards(props: { readonly summary: Summary }): JSX.Element {
  const { summary } = props;
  const { items } = summary.findings;
  const address = useAddress();
  const hasRange = address.from_ms !== '' || address.to_ms !== '';
  if (items.count === 0) {
    return (
      <p class="soft" data-testid="no-findings">
        {hasRange
          ? 'Findings judge the whole run: there are none under a time range.'
          : 'No findings: no call site holds much of the peak, nothing grows to the end, and few allocations are temporary.'}
      </p>
    );
  }
  return (
    <>
      <ul class="cards" aria-label="Findings">
        {range(Math.min(items.count, MOST)).map((row) => (
          <Card key={row} summary={summary} row={row} />
        ))}
      </ul>
      {items.count <= MOST ? null : (
        <details class="cards-more">
          <summary>{formatCountOf(items.count - MOST, 'more finding')}</summary>
          <ul class="cards">
            {range(items.count - MOST).map((more) => (
              <Card key={more} summary={summary} row={MOST + more} />
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
