// The flame graph: its options, the search, the canvas, and the line about the frame at the
// pointer.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { tree as treeAnswer, type Tree } from '../api/answers';
import { inReport } from '../api/report-file';
import { at } from '../base/columns';
import { formatCount, formatCountOf, formatPercent } from '../base/format';
import { fileLine } from '../model/code';
import { costTitle, errorBeside, formatCost, TABLE_COSTS } from '../model/cost';
import { foldAction, foldedLabel, foldOf, NO_FOLD, toggleFold } from '../model/folded-frames';
import type { Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { FLAME_LIMIT, flameParams } from '../state/questions';
import { useCodeMenu } from './code-menu';
import { FlameCanvas } from './flame-canvas';
import { exportPng, exportSvg } from './flame-export';
import { useSaveFile } from './parts/save-file';
import { flameLook, flameModel, flameSwatches, frameError, frameName, type FlameModel } from './flame-model';
import { CostSelect, RegexToggle, ToggleButton, useDebounced, WrapperToggle } from './parts/controls';
import { useLiveWhen } from './parts/live-when';
import { Pane } from './parts/pane';
import { useDarkness } from './parts/theme-hook';
import { useTells } from './parts/unknown-costs';
import './flame.css';

/** Beside the whole, which has no module. */
const HINT = 'Click: zoom in. Escape: zoom out. Right click: more.';
const SHARES = ['0', '0.0001', '0.0005', '0.001', '0.005', '0.01', '0.05'] as const;

function Controls(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const [search, setSearch] = useDebounced(address.search, (text) => go({ search: text }, 'refine'));
  return (
    <div class="toolbar" role="toolbar" aria-label="Flame graph">
      <CostSelect value={address.cost} costs={[...TABLE_COSTS, 'peak_blocks', 'live_blocks']} onChange={(cost) => go({ cost, zoom: '' })} />
      <ToggleButton isOn={address.direction === 'bottom_up'} label="Bottom-up" title="Begin at the allocating functions" onChange={(on) => go({ direction: on ? 'bottom_up' : 'top_down', zoom: '' })} />
      <ToggleButton isOn={address.layout === 'flame'} label="Flames up" title="Stand on the root instead of hanging from it" onChange={(on) => go({ layout: on ? 'flame' : 'icicle' })} />
      <WrapperToggle />
      {inReport() ? null : <ToggleButton isOn={address.collapse === '1'} label="Collapse recursion" title="A function that calls itself is one frame" onChange={(on) => go({ collapse: on ? '1' : '', zoom: '' })} />}
      <label class="toolbar-label">
        At least
        <select value={address.min_share} onChange={(e) => go({ min_share: e.currentTarget.value })}>
          {SHARES.map((share) => (
            <option key={share} value={share}>
              {share === '0' ? 'everything' : `${(Number(share) * 100).toString()} %`}
            </option>
          ))}
        </select>
      </label>
      <span class="flame-find">
        <input type="search" class="flame-search" aria-label="Search functions and modules" placeholder="search functions and modules" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        <RegexToggle isOn={address.search_regex === '1'} onChange={(on) => go({ search_regex: on ? '1' : '' }, 'refine')} />
      </span>
    </div>
  );
}

function searchText(tree: Tree, cost: string): string {
  if (tree.search === null) {
    return '';
  }
  const value = tree.search.totals[cost] ?? 0;
  const total = tree.selection.totals[cost] ?? 0;
  return `${formatCountOf(tree.search.matched_nodes, 'frame matches', 'frames match')}: ${formatCost(cost, value)}${errorBeside(value, tree.search.totals_errors?.[cost])}, ${formatPercent(value, total)} of ${formatCost(cost, total)}`;
}

function Trail(props: { readonly model: FlameModel; readonly zoomed: number }): JSX.Element {
  const { model, zoomed } = props;
  const path: number[] = [];
  for (let frame = zoomed; frame >= 0; frame = at(model.layout.parent, frame)) {
    path.unshift(frame);
    if (frame === 0) {
      break;
    }
  }
  const shown = path.length > 6 ? [0, ...path.slice(-5)] : path;
  return (
    <nav class="trail" aria-label="Zoomed to">
      <button type="button" onClick={() => history.back()} title="What was shown before (Alt+Left)" aria-label="Back">
        ←
      </button>
      <button type="button" onClick={() => history.forward()} title="Alt+Right" aria-label="Forward">
        →
      </button>
      {shown.map((frame, index) => (
        <span key={frame} class="trail-part">
          {index === 1 && path.length > 6 ? <span class="soft">… › </span> : null}
          <button type="button" class="link mono" disabled={frame === zoomed} onClick={() => zoomTo(model, frame)}>
            {model.name(frame).label}
          </button>
          {frame === zoomed ? null : <span class="soft"> ›</span>}
        </span>
      ))}
    </nav>
  );
}

/** The frames from the root to a frame, one a line. */
function pathText(model: FlameModel, frame: number): string {
  const names: string[] = [];
  for (let above = frame; above > 0; above = at(model.layout.parent, above)) {
    names.unshift(model.name(above).full);
  }
  return names.join('\n');
}

function zoomTo(model: FlameModel, frame: number): void {
  go({ zoom: frame <= 0 ? '' : model.pathOf(frame) });
}

function Graph(props: { readonly tree: Tree; readonly address: Address }): JSX.Element {
  const { tree, address } = props;
  const dark = useDarkness();
  const tells = useTells();
  const when = useLiveWhen();
  const saveFile = useSaveFile();
  const openMenu = useCodeMenu();
  const model = useMemo(() => flameModel(tree, address.cost, tells, when), [tree, when]);
  const look = useMemo(() => flameLook(model, dark), [model, dark]);
  const swatches = useMemo(() => flameSwatches(model, dark), [model, dark]);
  const zoomed = useMemo(() => (address.zoom === '' ? 0 : Math.max(model.frameOfPath(address.zoom), 0)), [model, address.zoom]);
  const [pointed, setPointed] = useState(0);
  const frame = pointed < model.layout.count ? pointed : 0;
  const isFlame = address.layout === 'flame';
  const unfold = (unfolded: number): void => {
    const fold = unfolded < 0 ? NO_FOLD : foldOf(tree.nodes, unfolded);
    if (foldAction(fold) !== '') {
      go({ unfold: toggleFold(address.unfold, fold), zoom: '' });
    }
  };
  const total = tree.selection.totals[address.cost] ?? 0;
  return (
    <>
      <div class="flame-head">
        <Trail model={model} zoomed={zoomed} />
        <span class="flame-count soft" data-testid="flame-count">
          {tree.nodes.count < tree.total_nodes ? (
            <span title={`Narrower frames are left out; so are those beyond the ${formatCount(Number(FLAME_LIMIT))} widest`}>{`widest ${formatCount(tree.nodes.count)} of ${formatCountOf(tree.total_nodes, 'frame')}`}</span>
          ) : (
            formatCountOf(tree.total_nodes, 'frame')
          )}
        </span>
        <button type="button" onClick={() => exportSvg(model, look, zoomed, isFlame, saveFile)}>
          SVG
        </button>
        <button type="button" onClick={() => exportPng(model, look, zoomed, isFlame, saveFile)}>
          PNG
        </button>
      </div>
      {tree.search === null ? null : (
        <p class="flame-match" role="status" data-testid="flame-match">
          {searchText(tree, address.cost)}
        </p>
      )}
      {total === 0 ? (
        <p class="notice">{`There is no ${costTitle(address.cost, when).toLowerCase()} to show here.`}</p>
      ) : (
        <FlameCanvas model={model} look={look} isFlame={isFlame} zoomed={zoomed} onZoom={(f) => zoomTo(model, f)} onStatus={setPointed} onUnfold={unfold} onMenu={(f, x, y) => openMenu(frameName(model, f), { x, y }, pathText(model, f))} />
      )}
      <div class="flame-foot">
        <p class="flame-status" data-testid="flame-status" aria-live="polite">
          {`${foldedLabel(model.name(frame), foldOf(tree.nodes, frame))}: ${formatCost(address.cost, model.value(frame))}${frameError(model, frame, address.cost)}, ${formatPercent(model.value(frame), total)}`}
          <span class="soft">{` ${frame === 0 ? HINT : [fileLine(frameName(model, frame)), model.name(frame).modulePath].filter((part) => part !== '').join(' ')}`}</span>
        </p>
        <ul class="flame-legend" aria-label="Colours">
          {swatches.map((swatch, index) => (
            <li key={index} title={swatch.text}>
              <span class="legend-colour" style={{ background: swatch.colour }} />
              {swatch.text}
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}

export function FlameView(): JSX.Element {
  const address = useAddress();
  const asked = useAsk('tree', flameParams(address), treeAnswer);
  return (
    <div class="view flame">
      <Controls address={address} />
      <Pane asked={asked} label="Flame graph">
        {(tree) => <Graph tree={tree} address={address} />}
      </Pane>
    </div>
  );
}
