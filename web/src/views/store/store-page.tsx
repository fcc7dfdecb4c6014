// The page of `cairn analyze --store`: the recordings of a store, its answers, and a link that opens
// one recording in a viewer of its own. The address says what is asked: #/store?ask=growth&old=1.0
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { storeTable, type StoreTable } from '../../api/store-answers';
import { openStored } from '../../api/client';
import { TABLE_COSTS } from '../../model/cost';
import { useAsk } from '../../state/hooks';
import { Notice, Pane } from '../parts/pane';
import { storeCostTitle, StoreRows } from './store-rows';
import './store-page.css';

/** What the page asks, and the fields of each question besides the scope. */
const QUESTIONS = [
  { ask: 'list', label: 'Recordings', help: 'the recordings, newest first', fields: [] },
  { ask: 'top', label: 'Top', help: 'the call sites with the highest cost', fields: [] },
  { ask: 'growth', label: 'Growth', help: 'what grew between two versions over all hosts, per recording', fields: ['old', 'new'] },
  { ask: 'diff', label: 'Changes', help: 'what changed between two versions over all hosts, per recording', fields: ['old', 'new'] },
  { ask: 'hosts', label: 'Hosts', help: 'which functions of which hosts differ most from the other hosts', fields: [] },
  { ask: 'history', label: 'History', help: 'what one function cost in each recording, oldest first', fields: ['function'] },
  { ask: 'oom', label: 'Out of memory', help: 'which functions hold the heap when memory has run out', fields: [] },
] as const;

const FIELDS = ['ask', 'service', 'host', 'sort', 'old', 'new', 'function'] as const;
type Field = (typeof FIELDS)[number];
type Asking = Readonly<Record<Field, string>>;
type Change = (patch: Partial<Asking>) => void;

function readAddress(): Asking {
  const given = new URLSearchParams(location.hash.split('?')[1] ?? '');
  const fields = Object.fromEntries(FIELDS.map((field) => [field, given.get(field) ?? '']));
  return { ask: '', service: '', host: '', sort: '', old: '', new: '', function: '', ...fields };
}

function useAsking(): readonly [Asking, Change] {
  const [asking, setAsking] = useState(readAddress());
  useEffect(() => {
    const read = (): void => setAsking(readAddress());
    window.addEventListener('popstate', read);
    return () => window.removeEventListener('popstate', read);
  }, []);
  const change: Change = (patch) => {
    const next = { ...asking, ...patch };
    const given = new URLSearchParams(Object.entries(next).filter(([, value]) => value !== ''));
    history.pushState(null, '', `#/store?${given.toString()}`);
    setAsking(next);
  };
  return [asking, change];
}

/** The distinct texts of a column, in the order of the rows. */
function distinct(table: StoreTable, column: string): readonly string[] {
  return [...new Set(table.rows.map((row) => row[column]).filter((value) => typeof value === 'string'))];
}

function Select(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly onChange: (value: string) => void;
}): JSX.Element {
  return (
    <label class="toolbar-label">
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}

function FunctionField(props: { readonly value: string; readonly onChange: (value: string) => void }): JSX.Element {
  return (
    <form
      class="toolbar-label"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem('function');
        props.onChange(field instanceof HTMLInputElement ? field.value : '');
      }}
    >
      <label>
        {'Function '}
        <input name="function" defaultValue={props.value} placeholder="its name, as the report shows it" />
      </label>
      <button type="submit">Ask</button>
    </form>
  );
}

function Scope(props: { readonly asking: Asking; readonly change: Change; readonly list: StoreTable }): JSX.Element {
  const { asking, change, list } = props;
  const all = (column: string): readonly { value: string; label: string }[] => [
    { value: '', label: 'all' },
    ...distinct(list, column).map((value) => ({ value, label: value })),
  ];
  const versions = distinct(list, 'version').map((value) => ({ value, label: value }));
  const fields: readonly string[] = QUESTIONS.find(({ ask }) => ask === asking.ask)?.fields ?? [];
  return (
    <div class="toolbar">
      <Select label="Service" value={asking.service} options={all('service')} onChange={(service) => change({ service })} />
      <Select label="Host" value={asking.host} options={all('host')} onChange={(host) => change({ host })} />
      <Select label="Cost" value={asking.sort} options={TABLE_COSTS.map((value) => ({ value, label: storeCostTitle(value) }))} onChange={(sort) => change({ sort })} />
      {fields.includes('old') ? (
        <>
          <Select label="From" value={asking.old} options={versions} onChange={(old) => change({ old })} />
          <Select label="To" value={asking.new} options={versions} onChange={(to) => change({ new: to })} />
        </>
      ) : null}
      {fields.includes('function') ? <FunctionField value={asking.function} onChange={(name) => change({ function: name })} /> : null}
    </div>
  );
}

/** The question with what the reader has not chosen yet: the latest two versions. */
function completed(asking: Asking, list: StoreTable): Asking {
  const versions = distinct(list, 'version');
  const latest = asking.new === '' ? (versions[0] ?? '') : asking.new;
  const before = versions.find((version) => version !== latest) ?? latest;
  return {
    ...asking,
    ask: QUESTIONS.some(({ ask }) => ask === asking.ask) ? asking.ask : 'list',
    sort: TABLE_COSTS.includes(asking.sort) ? asking.sort : 'peak_bytes',
    new: latest,
    old: asking.old === '' ? before : asking.old,
  };
}

function Answer(props: { readonly asking: Asking; readonly onOpen: (id: string) => void }): JSX.Element {
  const { asking } = props;
  const question = QUESTIONS.find(({ ask }) => ask === asking.ask) ?? QUESTIONS[0];
  const isReady = !question.fields.some((field) => field === 'function') || asking.function !== '';
  const own = Object.fromEntries(question.fields.map((field) => [field, asking[field]]));
  const params = { service: asking.service, host: asking.host, sort: asking.sort, ...own };
  const asked = useAsk(isReady ? `store/${question.ask}` : null, params, storeTable);
  if (!isReady) {
    return <Notice>Name a function.</Notice>;
  }
  return (
    <Pane asked={asked} label={question.label}>
      {(table) => <StoreRows label={question.label} table={table} onOpen={props.onOpen} />}
    </Pane>
  );
}

export function StorePage(): JSX.Element {
  const [given, change] = useAsking();
  const [notice, setNotice] = useState('');
  const asked = useAsk('store/list', {}, storeTable);
  useEffect(() => {
    document.title = 'Store · cairn';
  }, []);
  const open = async (id: string): Promise<void> => {
    setNotice('');
    const result = await openStored(id);
    if (result.ok) {
      location.assign(result.value);
    } else {
      setNotice(`${result.error.message}.`);
    }
  };
  return (
    <Pane asked={asked} label="Store">
      {(list) => {
        const asking = completed(given, list);
        return (
          <div class="shell">
            <header class="head">
              <span class="head-name">cairn</span>
              <span class="head-file">Store</span>
            </header>
            <nav class="tabs" aria-label="Questions">
              {QUESTIONS.map(({ ask, label, help }) => (
                <button
                  key={ask}
                  type="button"
                  class={ask === asking.ask ? 'tab tab-here' : 'tab'}
                  {...(ask === asking.ask ? { 'aria-current': 'page' as const } : {})}
                  title={help}
                  onClick={() => change({ ask })}
                >
                  {label}
                </button>
              ))}
            </nav>
            <main class="main" data-view="store">
              <h1 class="visually-hidden">Store</h1>
              {notice === '' ? null : <Notice bad>{notice}</Notice>}
              <Scope asking={asking} change={change} list={list} />
              <Answer asking={asking} onOpen={(id) => void open(id)} />
            </main>
          </div>
        );
      }}
    </Pane>
  );
}
