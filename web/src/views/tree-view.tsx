// Bottom-up and top-down: the call tree as a table, beside the whole stacks of the selected row.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { inReport } from '../api/report-file';
import { ALL_COSTS, columnCosts, costMeaning, costTitle, type CostKey, type LiveWhen } from '../model/cost';
import { foldAction, foldedLabel, NO_FOLD, toggleFold } from '../model/folded-frames';
import { visibleRows, type TreeNode } from '../model/tree-rows';
import type { Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress } from '../state/hooks';
import { treeParams } from '../state/questions';
import { onKeyOutsideFields } from '../state/keys';
import { useCodeMenu } from './code-menu';
import { CodeText, nameText, openFunction } from './parts/code-label';
import { CostSelect, ToggleButton, WrapperToggle } from './parts/controls';
import { costColumn } from './parts/cost-cell';
import { DataTable, type Column } from './parts/data-table';
import { useLiveWhen } from './parts/live-when';
import { Failure } from './parts/pane';
import { Waiting } from './parts/waiting';
import { StackPanel } from './stack-panel';
import { useTree, type LoadedTree } from './tree-loader';
import './tree-view.css';

function treeCost(cost: CostKey, address: Address, loaded: LoadedTree, node: (row: number) => TreeNode | undefined, when: LiveWhen): Column {
  const total = loaded.selection?.totals[cost] ?? 0;
  const root = loaded.tree.nodes.get(0);
  const isDiff = address.diff === '1';
  const shape = { title: costTitle(cost, when), isDiff, hasErrors: (root?.errors ?? root?.oldErrors ?? null) !== null };
  const column = costColumn(cost, shape, (row) => {
    const entry = node(row);
    return { value: entry?.total[cost] ?? 0, total, old: entry?.old?.[cost], error: entry?.errors?.[cost], oldError: entry?.oldErrors?.[cost] };
  });
  return { ...column, help: `${costMeaning(cost, when)}: sort by this`, sortable: true };
}

function unfold(address: Address, entry: TreeNode | undefined): boolean {
  const fold = entry?.fold ?? NO_FOLD;
  if (foldAction(fold) === '') {
    return false;
  }
  go({ unfold: toggleFold(address.unfold, fold), zoom: '' }, 'refine');
  return true;
}

/** "3 frames of std::vector" for a folded run, else the name without abbreviation. */
function nodeText(entry: TreeNode | undefined): string {
  if (entry === undefined) {
    return '';
  }
  const label = foldedLabel(entry.name, entry.fold);
  return label === entry.name.label ? nameText(entry.name) : label;
}

/** The frames from the root to a node, one a line. */
function pathText(tree: LoadedTree['tree'], entry: TreeNode): string {
  const names: string[] = [];
  for (let at: TreeNode | undefined = entry; at !== undefined && at.id !== 0; at = tree.nodes.get(at.parent ?? 0)) {
    names.unshift(nameText(at.name));
  }
  return names.join('\n');
}

/** The name of a node, and the button that unfolds what it hides or folds it again. */
function NodeName(props: { readonly entry: TreeNode; readonly address: Address }): JSX.Element {
  const { fold, name } = props.entry;
  const label = foldedLabel(name, fold);
  const action = foldAction(fold);
  const button = fold.hidden > 0 ? `+${fold.hidden}` : 'fold';
  return (
    <>
      <CodeText name={label === name.label ? name : { ...name, label, file: '' }} />
      {action === '' ? null : (
        <button type="button" class="link tree-fold" tabIndex={-1} title={action} aria-label={`${button}: ${action}`} onClick={() => unfold(props.address, props.entry)}>
          {button}
        </button>
      )}
    </>
  );
}

function TreeTable(props: {
  readonly loaded: LoadedTree;
  readonly address: Address;
  readonly selected: number;
  readonly isAbout: boolean;
  readonly onSelect: (id: number) => void;
}): JSX.Element {
  const { loaded, address } = props;
  const { tree } = loaded;
  const when = useLiveWhen();
  const openMenu = useCodeMenu();
  const rows = useMemo(() => visibleRows(tree), [tree]);
  const idAt = (row: number): number => rows[row]?.id ?? -1;
  const node = (row: number): TreeNode | undefined => tree.nodes.get(idAt(row));
  const columns: readonly Column[] = [
    {
      key: 'name',
      title: address.view === 'bottom-up' ? 'Function, then its callers' : 'Function, then what it called',
      widthPx: 254,
      grows: true,
      cell: (row) => {
        const entry = node(row);
        return entry === undefined ? '' : <NodeName entry={entry} address={address} />;
      },
      saved: [{ head: 'Function', value: (row) => nodeText(node(row)) }],
    },
    ...columnCosts(address.cost, address.diff === '1').map((cost, index) => ({ ...treeCost(cost, address, loaded, node, when), spare: index + 1 })),
  ];
  return (
    <DataTable
      label={address.view === 'bottom-up' ? 'Bottom-up tree' : 'Top-down tree'}
      columns={columns}
      count={rows.length}
      selected={rows.findIndex((row) => row.id === props.selected)}
      isAbout={props.isAbout}
      sortBy={address.cost}
      onSort={(key) => go({ cost: key })}
      onSelect={(row) => props.onSelect(idAt(row))}
      onActivate={(row) => {
        const entry = node(row);
        if (entry !== undefined) {
          openFunction(entry.name);
        }
      }}
      onMenu={(row, place) => {
        const entry = node(row);
        if (entry !== undefined) {
          openMenu(entry.name, place, pathText(tree, entry));
        }
      }}
      level={(row) => rows[row]?.level ?? 0}
      isOpen={(row) => ((node(row)?.childCount ?? 0) === 0 ? null : tree.open.has(idAt(row)))}
      onToggle={(row, open) => loaded.toggle(idAt(row), open)}
      parentOf={(row) => rows.findIndex((candidate) => candidate.id === node(row)?.parent)}
      {...(loaded.busy ? { empty: '' } : {})}
      {...(loaded.error === null ? {} : { empty: 'No answer.' })}
    />
  );
}

function TreeView(props: { readonly direction: 'bottom_up' | 'top_down' }): JSX.Element {
  const address = useAddress();
  const asked = treeParams(address, props.direction);
  const loaded = useTree(asked);
  // A node of another tree is none of this one.
  const question = JSON.stringify(asked);
  const [chosen, setChosen] = useState({ question, node: -1 });
  const selected = chosen.question === question ? chosen.node : -1;
  const setSelected = (node: number): void => setChosen({ question, node });
  // By function: a row of the tree has no line. A tree that is still the one before has other nodes.
  const about = address.subject === '' || loaded.busy ? -1 : (visibleRows(loaded.tree).find((row) => row.level === 0 && loaded.tree.nodes.get(row.id)?.name.full === address.subject)?.id ?? -1);
  useEffect(() => setSelected(about), [loaded.question, about]);
  const select = (id: number): void => {
    setSelected(id);
    if (id !== about) {
      go({ subject: '', subject_line: '' }, 'refine');
    }
  };
  const split = useRef<HTMLDivElement>(null);
  const openHot = async (): Promise<void> => {
    const last = await loaded.openHotPath(Math.max(selected, 0), address.cost);
    if (last > 0) {
      setSelected(last);
      split.current?.querySelector<HTMLElement>('[role=treegrid]')?.focus();
    }
  };
  const hot = (): void => void openHot();
  // A layout effect: a key that is pressed right after a row was selected acts on that row.
  useLayoutEffect(() =>
    onKeyOutsideFields((key) => (key === 'h' ? (hot(), true) : key === 'u' && unfold(address, loaded.tree.nodes.get(selected)))),
  );
  return (
    <div class="view">
      <div class="toolbar" role="toolbar" aria-label="Tree">
        <CostSelect value={address.cost} costs={ALL_COSTS} onChange={(cost) => go({ cost })} />
        <button type="button" onClick={hot} title="Open the heaviest child, and its heaviest as long as it holds half, and select it (h)">
          Open hot path
        </button>
        <WrapperToggle />
        {inReport() ? null : (
          <ToggleButton
            isOn={address.collapse === '1'}
            label="Collapse recursion"
            title="A function that calls itself is one row"
            onChange={(on) => go({ collapse: on ? '1' : '' })}
          />
        )}
        <span class="soft">
          {props.direction === 'bottom_up'
            ? 'Call sites; open one to see its callers.'
            : 'From main and the threads inwards, open to the first branch.'}
        </span>
      </div>
      {loaded.error === null ? null : <Failure label="Tree" error={loaded.error} onAgain={loaded.again} />}
      {loaded.busy ? <Waiting label="Tree" onCancel={loaded.cancel} /> : null}
      <div class="split" ref={split}>
        <TreeTable loaded={loaded} address={address} selected={selected} isAbout={about >= 0 && selected === about} onSelect={select} />
        <StackPanel asked={asked} node={selected} cost={address.cost} />
      </div>
    </div>
  );
}

export function BottomUpView(): JSX.Element {
  return <TreeView key="bottom-up" direction="bottom_up" />;
}

export function TopDownView(): JSX.Element {
  return <TreeView key="top-down" direction="top_down" />;
}
