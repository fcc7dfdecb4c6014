// The frame of the page: the recording, the views, the filter, and the view that the address names.
import type { FunctionComponent, JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { meta as metaAnswer, type Meta } from '../api/answers';
import { inReport } from '../api/report-file';
import { shownText } from '../base/shown-text';
import { isFiltered, type ViewId } from '../state/address';
import { notApplied } from '../state/filter-reach';
import { appState, go, resetFilter, setFilterOpen, setHelp } from '../state/app-state';
import { useAppState, useAsk } from '../state/hooks';
import { onKeyOutsideFields } from '../state/keys';
import { followRecording } from '../state/live';
import { prefetch } from '../state/prefetch';
import { applyTheme, readTheme, type Theme } from '../state/theme';
import { ChartsView } from './charts';
import { CodeMenuLayer } from './code-menu';
import { Compare } from './compare';
import { FilterBar } from './filter-bar';
import { FilterScope } from './filter-scope';
import { FlameView } from './flame';
import { FunctionsView } from './functions';
import { Help } from './help';
import { LeaksView } from './leaks';
import { LiveControls } from './live-controls';
import { PeakView } from './peak';
import { RssView } from './rss';
import { MetaContext, useMeta } from './parts/meta-context';
import { Notice, Pane } from './parts/pane';
import { SizesView } from './sizes';
import { SourceView } from './source';
import { SummaryView } from './summary';
import { ThreadsView } from './threads';
import { TimeLine } from './time-line';
import { BottomUpView, TopDownView } from './tree-view';
import { Verdict } from './verdict';
import './shell.css';

interface ViewEntry {
  readonly id: ViewId;
  readonly label: string;
  readonly component: FunctionComponent;
}

export const ENTRIES: readonly ViewEntry[] = [
  { id: 'summary', label: 'Summary', component: SummaryView },
  { id: 'peak', label: 'Peak', component: PeakView },
  { id: 'bottom-up', label: 'Bottom-up', component: BottomUpView },
  { id: 'functions', label: 'Caller / Callee', component: FunctionsView },
  { id: 'top-down', label: 'Top-down', component: TopDownView },
  { id: 'flame', label: 'Flame graph', component: FlameView },
  { id: 'charts', label: 'Over time', component: ChartsView },
  { id: 'sizes', label: 'Sizes', component: SizesView },
  { id: 'leaks', label: 'Leaks', component: LeaksView },
  { id: 'threads', label: 'Threads', component: ThreadsView },
  { id: 'rss', label: 'RSS', component: RssView },
  { id: 'source', label: 'Source', component: SourceView },
];

/** Views that answer one question are beside each other. */
const GROUPS: readonly { readonly label: string; readonly views: readonly ViewId[] }[] = [
  { label: 'Overview', views: ['summary'] },
  { label: 'Where', views: ['peak', 'bottom-up', 'functions', 'top-down', 'flame'] },
  { label: 'When and how', views: ['charts', 'sizes'] },
  { label: 'What stays', views: ['leaks'] },
  { label: 'Who', views: ['threads', 'rss'] },
  { label: 'Source', views: ['source'] },
];

/** The capability without which a view asks nothing. */
const NEEDS: Readonly<Partial<Record<ViewId, string>>> = { charts: 'slices', sizes: 'sizes', rss: 'rss' };

const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

function ThemeButton(): JSX.Element {
  const [theme, setTheme] = useState(readTheme());
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
  return (
    <button
      type="button"
      title={`Colours: ${theme}. Click for ${next}.`}
      aria-label={`Colours: ${theme}. Change to ${next}.`}
      onClick={() => {
        applyTheme(next);
        setTheme(next);
      }}
    >
      {theme === 'system' ? '◐' : theme === 'light' ? '☀' : '☾'}
    </button>
  );
}

/** Opens the filter, and focuses its text at once, so that it takes the next key. */
function openFilter(): void {
  const text = document.getElementById('filter-text');
  text?.closest('section')?.removeAttribute('hidden'); // as the next drawing will
  text?.focus();
  setFilterOpen(true);
}

function FilterButton(): JSX.Element {
  const { address, isFilterOpen } = useAppState();
  const isShown = isFilterOpen || isFiltered(address);
  return (
    <button
      type="button"
      aria-expanded={isShown}
      disabled={isFiltered(address)}
      title={isFiltered(address) ? 'The filter is in force' : isShown ? 'Fold the filter' : 'Filter all views (/)'}
      onClick={() => (isShown ? setFilterOpen(false) : openFilter())}
    >
      Filters
    </button>
  );
}

function Header(): JSX.Element {
  const meta = useMeta();
  return (
    <header class="head">
      <span class="head-name">cairn</span>
      <span class="head-file" title={meta.file.path}>
        {meta.file.name}
      </span>
      <span class="head-command soft mono" title={meta.run.command_line}>
        {meta.run.command_line}
      </span>
      {meta.state === 'running' && !inReport() ? <LiveControls /> : null}
      {meta.damage === null ? null : (
        <button type="button" class="head-damage" title={`${meta.damage}: every number counts what is there`} onClick={() => go({ view: 'summary' })}>
          incomplete file
        </button>
      )}
      {meta.run.sampling === null ? null : (
        <span class="head-damage" title={meta.run.sampling.sentence}>
          {`estimates: 1 of ${(meta.run.sampling.allocations / Math.max(meta.run.sampling.recorded_allocations, 1)).toPrecision(3)} recorded`}
        </span>
      )}
      <span class="head-end">
        {inReport() ? null : <FilterButton />}
        {inReport() ? null : <Compare />}
        <ThemeButton />
        <button type="button" aria-label="Keyboard help" title="Keyboard help (?)" onClick={() => setHelp(true)}>
          ?
        </button>
      </span>
    </header>
  );
}

function Tab(props: { readonly entry: ViewEntry; readonly isHere: boolean }): JSX.Element {
  const { entry, isHere } = props;
  const index = ENTRIES.indexOf(entry);
  return (
    <button
      type="button"
      class={isHere ? 'tab tab-here' : 'tab'}
      {...(isHere ? { 'aria-current': 'page' as const } : {})}
      title={index < 10 ? `${entry.label} (${(index + 1) % 10})` : `${entry.label} ([ and ] go to the next view)`}
      data-testid={`tab-${entry.id}`}
      onClick={() => go({ view: entry.id })}
    >
      {entry.label}
    </button>
  );
}

/** All tabs, in as many lines as they need: none is ever out of sight. */
function Tabs(props: { readonly view: ViewId }): JSX.Element {
  return (
    <nav class="tabs" aria-label="Views">
      {GROUPS.map((group) => (
        <span key={group.label} class="tab-group" role="group" aria-label={group.label}>
          {ENTRIES.filter((entry) => group.views.includes(entry.id)).map((entry) => (
            <Tab key={entry.id} entry={entry} isHere={entry.id === props.view} />
          ))}
        </span>
      ))}
    </nav>
  );
}

/** The view of a digit: 1 is the first, 0 the tenth. */
function entryOfDigit(key: string): ViewEntry | undefined {
  return /^[0-9]$/.test(key) ? ENTRIES[(Number(key) + 9) % 10] : undefined;
}

/** The view before or after the shown one, around the ends. */
function entryBeside(step: number): ViewEntry | undefined {
  const here = ENTRIES.findIndex((entry) => entry.id === appState.get().address.view);
  return ENTRIES[(here + step + ENTRIES.length) % ENTRIES.length];
}

function takeKey(key: string): boolean {
  const entry = key === '[' ? entryBeside(-1) : key === ']' ? entryBeside(1) : entryOfDigit(key);
  if (key === '?') {
    setHelp(true);
  } else if (key === '/') {
    openFilter();
  } else if (key === 'x') {
    resetFilter();
  } else if (entry !== undefined) {
    go({ view: entry.id });
  } else {
    return false;
  }
  return true;
}

/** The identity of a run; the file of a running program grows and stays the same recording. */
function identityOf({ run }: Meta): string {
  return [run.host, run.start_unix_ms, run.pid, run.command_line, run.program].join('\n');
}

/** The note that another recording has replaced the file, or "". */
function useReplaced(meta: Meta | null): readonly [string, () => void] {
  const known = useRef<string | null>(null);
  const [when, setWhen] = useState('');
  useEffect(() => {
    if (meta === null) {
      return;
    }
    const identity = identityOf(meta);
    if (known.current !== null && known.current !== identity) {
      setWhen(new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
    }
    known.current = identity;
  }, [meta]);
  return [when, () => setWhen('')];
}

/** The views that have an answer: some need data that not every recording has. */
function useKnownViews(meta: Meta | null): readonly ViewId[] {
  return useMemo(
    () => ENTRIES.map((entry) => entry.id).filter((id) => meta !== null && (NEEDS[id] === undefined || meta.capabilities[NEEDS[id]] === true)),
    [meta],
  );
}

export function Shell(): JSX.Element {
  const { address, help, isFilterOpen, notice } = useAppState();
  const asked = useAsk('meta', {}, metaAnswer);
  const [replaced, forgetReplaced] = useReplaced(asked.value);
  const limits = notApplied(address);
  useEffect(() => onKeyOutsideFields(takeKey), []);
  const isEnded = asked.value !== null && asked.value.state !== 'running' && !inReport();
  const views = useKnownViews(asked.value);
  // Of other addresses the answers are not worth the server's time until a view asks.
  useEffect(() => (isEnded && !isFiltered(address) && address.diff === '' ? prefetch(address, views) : undefined), [isEnded, views]);
  const isRunning = asked.value?.state === 'running' && !inReport();
  useEffect(() => (isRunning ? followRecording() : undefined), [isRunning]);
  const entry = ENTRIES.find((candidate) => candidate.id === address.view) ?? ENTRIES[0];
  const View = entry?.component ?? SummaryView;
  useEffect(() => {
    const file = asked.value?.file.name;
    document.title = file === undefined ? 'cairn' : shownText(`${entry?.label ?? ''} · ${file} · cairn`);
  }, [asked.value, entry]);
  return (
    <Pane asked={asked} label="cairn">
      {(meta) => (
        <MetaContext.Provider value={meta}>
          <FilterScope>
            <div class="shell">
              <Header />
              <Tabs view={address.view} />
              <FilterBar isShown={isFilterOpen || isFiltered(address)} />
              {address.view === 'summary' || inReport() ? null : <TimeLine isTall={false} />}
              <main class="main" data-view={address.view}>
                <h1 class="visually-hidden">{entry?.label}</h1>
                {notice === '' ? null : <Notice bad>{notice}</Notice>}
                {replaced === '' ? null : (
                  <Notice bad>
                    {`The file was replaced at ${replaced}: this page now shows another recording. `}
                    <button type="button" onClick={forgetReplaced}>
                      Dismiss
                    </button>
                  </Notice>
                )}
                {limits === '' ? null : <Notice>{limits}</Notice>}
                <Verdict />
                <View />
              </main>
            </div>
          </FilterScope>
          {help ? <Help /> : null}
          <CodeMenuLayer />
        </MetaContext.Provider>
      )}
    </Pane>
  );
}
