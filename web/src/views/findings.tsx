// The findings as cards: what deserves attention, the responsible call site, how sure it is, and
// the view that shows it. In a comparison, what became of each. The sentences are the server's.
import type { ComponentChildren, JSX } from 'preact';
import type { Summary } from '../api/answers';
import { at, range } from '../base/columns';
import { formatBytes, formatChange, formatCountOf, formatPercent } from '../base/format';
import { locationName, type CodeName } from '../model/code';
import { errorBeside, type CostKey } from '../model/cost';
import type { Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress } from '../state/hooks';
import { CodeLink } from './parts/code-label';
import { useHasEnded } from './parts/live-when';
import { Sentence } from './parts/sentence';
import { asSubject } from './parts/subject';
import './findings.css';

interface Link {
  readonly label: string;
  /** `who`: the id of the thread or process that it is about, or "". */
  readonly to: (name: CodeName, who: string) => Partial<Address>;
}

interface Kind {
  readonly title: string;
  /** What the bytes of the finding are a part of. */
  readonly whole: string;
  readonly links: readonly Link[];
  /** Of the lines in the source of its call site. */
  readonly cost?: CostKey;
}

const WHY: Link = { label: 'Why the peak', to: (name) => ({ view: 'peak', ...asSubject(name) }) };
const FLAME: Link = { label: 'Flame graph', to: (name) => ({ view: 'flame', cost: 'peak_bytes', search: name.full }) };
const LEAKS: Link = { label: 'Leaks', to: (name) => ({ view: 'leaks', leaks_by: 'call_site', growth: '', ...asSubject(name) }) };
const OVER_TIME: Link = { label: 'Over time', to: (name) => ({ view: 'charts', chart: 'live_bytes', by: 'call_site', ...asSubject(name) }) };
const RSS: Link = { label: 'RSS', to: (name) => ({ view: 'rss', ...asSubject(name) }) };

const BOTTOM_UP: Link = { label: 'Bottom-up', to: (name) => ({ view: 'bottom-up', cost: 'peak_bytes', ...asSubject(name) }) };

/** By what the report says to look at: churn is of three sorts. */
const CHURN: Readonly<Record<string, Link>> = {
  '--histogram': { label: 'Lifetimes', to: (name) => ({ view: 'sizes', histogram: 'lifetimes', function: name.full }) },
  '-a': { label: 'Bottom-up', to: (name) => ({ view: 'bottom-up', cost: 'allocated_bytes', ...asSubject(name) }) },
};

const KINDS: Readonly<Record<string, Kind>> = {
  peak: { title: 'Holds the peak', whole: 'of the peak', links: [WHY, FLAME], cost: 'peak_bytes' },
  growth: { title: 'Grows', whole: 'of what is live at the end', links: [LEAKS, OVER_TIME], cost: 'live_bytes' },
  unfreed: { title: 'Not freed', whole: 'of what is live at the end', links: [LEAKS], cost: 'live_bytes' },
  churn: { title: 'Churn', whole: 'of all allocated bytes', links: [{ label: 'Bottom-up', to: (name) => ({ view: 'bottom-up', cost: 'temporary', ...asSubject(name) }) }], cost: 'allocated_bytes' },
  rss: { title: 'RSS beyond the heap', whole: 'of RSS', links: [RSS] },
  sparse: { title: 'Fragmented heap', whole: 'of RSS', links: [RSS] },
  huge: { title: 'Huge pages', whole: 'of RSS', links: [RSS] },
  uneven: { title: 'Unlike its siblings', whole: 'of the peak', links: [{ label: 'Threads', to: (_name, who) => ({ view: 'threads', subject: who }) }] },
  oom: { title: 'Out of memory', whole: 'of the limit', links: [LEAKS, OVER_TIME], cost: 'live_bytes' },
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

/** What a card shows, beside the figures. */
interface Finding {
  readonly id: string;
  readonly look: string;
  readonly confidence: string;
  readonly sentence: string;
  readonly name: CodeName;
  readonly who: string;
}

/** Of two columns of ids: the thread's, else the process's. */
function whoOf(ids: { readonly pid: readonly number[]; readonly thread_id: readonly number[] }, row: number): string {
  const id = at(ids.thread_id, row) || at(ids.pid, row);
  return id === 0 ? '' : String(id);
}

/** Whether a call site is in the list of what gained before the peak. */
function hasGained(summary: Summary, location: number | null | undefined): boolean {
  const sites = summary.findings.peak_rise?.sites;
  return sites !== undefined && location !== null && location !== undefined && sites.location.includes(location);
}

/** A card; `hasGained`: its call site is a row of Peak. `children`: its figures. */
function Card(props: { readonly finding: Finding; readonly kind: Kind; readonly verdict: string; readonly hasGained: boolean; readonly children: ComponentChildren }): JSX.Element {
  const { finding, kind, verdict } = props;
  const { id, name, who } = finding;
  const churn = id === 'churn' ? CHURN[finding.look] : undefined;
  const links = (churn === undefined ? kind.links : [churn]).map((link) => (link === WHY && !props.hasGained ? BOTTOM_UP : link));
  return (
    <li class={`card card-${id}${verdict === '' ? '' : ` card-${verdict}`}`} data-testid={`finding-${id}`}>
      <h2 class="card-title">
        <span>
          {verdict === '' ? null : <span class="card-verdict">{verdict}</span>}
          {kind.title}
        </span>
        <span class="card-sure">{SURE[finding.confidence] ?? finding.confidence}</span>
      </h2>
      {props.children}
      {name.id === null ? null : <CodeLink name={name} {...(kind.cost === undefined ? {} : { cost: kind.cost })} />}
      <p class="card-sentence">
        <Sentence text={finding.sentence} />
      </p>
      <p class="card-links">
        {links.map((link) => (
          <button key={link.label} type="button" onClick={() => go({ subject: '', subject_line: '', ...link.to(name, who) })}>
            {link.label}
          </button>
        ))}
      </p>
    </li>
  );
}

function useKind(id: string): Kind {
  return { ...(KINDS[id] ?? { title: id, whole: 'of all', links: [] }), ...(useHasEnded() ? {} : LIVE_KINDS[id]) };
}

function PlainCard(props: { readonly summary: Summary; readonly row: number }): JSX.Element {
  const { findings, code } = props.summary;
  const { items } = findings;
  const { row } = props;
  const id = items.kind[row] ?? '';
  const kind = useKind(id);
  const bytes = at(items.bytes, row);
  const whole = at(items.whole_bytes, row);
  const finding = { id, look: items.look[row] ?? '', confidence: items.confidence[row] ?? '', sentence: items.sentence[row] ?? '', name: locationName(code, items.location[row]), who: whoOf(items, row) };
  return (
    <Card finding={finding} kind={kind} verdict="" hasGained={hasGained(props.summary, items.location[row])}>
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
    </Card>
  );
}

type Changes = NonNullable<Summary['findings']['changes']>;

/** "+2.38 MiB ±120 KiB", or the figure of the only side that has one. */
function changeFigure(changes: Changes, row: number): string {
  const change = changes.change[row] ?? null;
  if (change === null) {
    const only = changes.new[row] ?? changes.old[row] ?? 0;
    return only === 0 ? '' : formatBytes(only);
  }
  const error = changes.change_error[row] ?? 0;
  return `${formatChange(change, formatBytes)}${error > 0 ? ` ±${formatBytes(Math.round(error))}` : ''}`;
}

/** A finding of a comparison: what became of it. */
function ChangedCard(props: { readonly summary: Summary; readonly changes: Changes; readonly row: number }): JSX.Element {
  const { summary, changes, row } = props;
  const id = changes.kind[row] ?? '';
  const verdict = changes.class[row] ?? '';
  const before = changes.old[row] ?? null;
  const now = changes.new[row] ?? null;
  const most = Math.max(before ?? 0, now ?? 0, 1);
  const share = (bytes: number | null): string => `${(((bytes ?? 0) / most) * 100).toFixed(2)}%`;
  const text = (bytes: number | null): string => (bytes === null ? 'none' : formatBytes(bytes));
  const sentence = `${verdict === 'gone' ? 'Was: ' : ''}${changes.sentence[row] ?? ''}`;
  const finding = { id, look: changes.look[row] ?? '', confidence: changes.confidence[row] ?? '', sentence, name: locationName(summary.code, changes.location[row]), who: whoOf(changes, row) };
  return (
    <Card finding={finding} kind={useKind(id)} verdict={verdict} hasGained={hasGained(summary, changes.location[row])}>
      <p class="card-figure">
        <span>{changeFigure(changes, row)}</span>
        {before === null && now === null ? null : <span class="card-share">{`${text(before)} before, ${text(now)} now`}</span>}
      </p>
      <span class="card-track card-track-old" aria-hidden="true">
        <span class="card-bar" style={{ width: share(before) }} />
      </span>
      <span class="card-track" aria-hidden="true">
        <span class="card-bar" style={{ width: share(now) }} />
      </span>
    </Card>
  );
}

export function FindingCards(props: { readonly summary: Summary }): JSX.Element {
  const { summary } = props;
  const { items, changes } = summary.findings;
  const address = useAddress();
  const hasRange = address.from_ms !== '' || address.to_ms !== '';
  const count = changes === null ? items.count : changes.count;
  if (count === 0) {
    return (
      <p class="soft" data-testid="no-findings">
        {hasRange
          ? 'Findings judge the whole run: there are none under a time range.'
          : 'No findings: no call site holds much of the peak, nothing grows to the end, and few allocations are temporary.'}
      </p>
    );
  }
  const card = (row: number): JSX.Element =>
    changes === null ? <PlainCard key={row} summary={summary} row={row} /> : <ChangedCard key={row} summary={summary} changes={changes} row={row} />;
  return (
    <>
      <ul class="cards" aria-label={changes === null ? 'Findings' : 'Findings, the largest change first'}>
        {range(Math.min(count, MOST)).map(card)}
      </ul>
      {count <= MOST ? null : (
        <details class="cards-more">
          <summary>{formatCountOf(count - MOST, 'more finding')}</summary>
          <ul class="cards">{range(count - MOST).map((more) => card(MOST + more))}</ul>
        </details>
      )}
    </>
  );
}
