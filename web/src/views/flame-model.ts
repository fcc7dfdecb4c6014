// Converts the answer of the tree to the names, colours and tooltips of the flame graph.
import type { Tree } from '../api/answers';
import { at } from '../base/columns';
import { formatCountOf, formatPercent } from '../base/format';
import { fileLine, functionName, locationName, NO_CODE, type CodeName } from '../model/code';
import { findPath, framePaths, pathOf } from '../model/frame-path';
import { foldAction, foldedLabel, foldOf } from '../model/folded-frames';
import { ALL_COSTS, changeError, costTitle, errorBeside, formatCost, formatCostChange, formatCostExact, type CostKey, type LiveWhen } from '../model/cost';
import { palette } from '../render/colour';
import { comparedWidths } from '../model/compared-widths';
import { layoutFlame, type FlameLayout } from '../render/flame/layout';
import { cssVariable } from './parts/theme-hook';
import type { FlameLook } from '../render/flame/draw';

export interface FlameModel {
  readonly tree: Tree;
  readonly cost: CostKey;
  /** Whether figures of a cost are meaningful. */
  readonly tells: (cost: CostKey) => boolean;
  readonly when: LiveWhen;
  readonly layout: FlameLayout;
  readonly name: (frame: number) => CodeName;
  readonly value: (frame: number) => number;
  /** The path of a frame, for the address, and the frame of a path; -1: it is not among the frames. */
  readonly pathOf: (frame: number) => string;
  readonly frameOfPath: (path: string) => number;
}

/** The function of a frame by what is the same in every recording. */
function keyOf(tree: Tree, frame: number): string {
  const { functions, modules } = tree.code;
  const index = tree.nodes.function[frame] ?? null;
  const module = index === null ? null : (functions.module[index] ?? null);
  return index === null ? '' : `${functions.name[index] ?? ''}\n${module === null ? '' : (modules.name[module] ?? '')}`;
}

export function flameModel(tree: Tree, cost: CostKey, tells: (cost: CostKey) => boolean, when: LiveWhen): FlameModel {
  const names = new Map<number, CodeName>();
  const { nodes } = tree;
  const values = nodes.total[cost] ?? [];
  let paths: readonly number[] | null = null;
  const allPaths = (): readonly number[] => (paths ??= framePaths(nodes, (row) => keyOf(tree, row)));
  return {
    tree,
    cost,
    tells,
    when,
    layout: layoutFlame(nodes, comparedWidths(nodes, cost)),
    value: (frame) => at(values, frame),
    pathOf: (frame) => pathOf(nodes, allPaths(), frame),
    frameOfPath: (path) => findPath(nodes, allPaths(), path),
    name: (frame) => {
      const index = nodes.function[frame] ?? null;
      if (index === null) {
        return { ...NO_CODE, label: 'all', full: 'everything that passes the filter' };
      }
      const known = names.get(index);
      if (known !== undefined) {
        return known;
      }
      const name = functionName(tree.code, index);
      names.set(index, name);
      return name;
    },
  };
}

/** " ±12%": the error of what passes through a frame. */
export function frameError(model: FlameModel, frame: number, cost: CostKey): string {
  const { total, total_errors: errors } = model.tree.nodes;
  return errors === null ? '' : errorBeside(at(total[cost], frame), at(errors[cost], frame));
}

function changeText(model: FlameModel, frame: number, cost: CostKey): string {
  const { total, old_total: old, total_errors: errors, old_total_errors: oldErrors } = model.tree.nodes;
  if (old === null) {
    return '';
  }
  const error = changeError(errors === null ? 0 : at(errors[cost], frame), oldErrors === null ? 0 : at(oldErrors[cost], frame));
  const unsure = error === 0 ? '' : ` ±${formatCost(cost, error)}`;
  return `, ${formatCostChange(cost, at(total[cost], frame) - at(old[cost], frame))}${unsure} against before`;
}

/** Beside the cost that is the width of the frames. */
const TIP_COSTS: readonly CostKey[] = ['peak_bytes', 'allocations', 'live_bytes'];

/** How much a tooltip says: one cost where there is little room, three, or all on demand. */
export type TipSize = 'one' | 'some' | 'all';

function tipCosts(cost: CostKey, size: TipSize): readonly CostKey[] {
  const some = [cost, ...TIP_COSTS.filter((key) => key !== cost)].slice(0, 3);
  return { one: [cost], some, all: [...ALL_COSTS] }[size];
}

/** The name of a frame, with the file and line of one of its calls, if they are known. */
export function frameName(model: FlameModel, frame: number): CodeName {
  const location = model.tree.nodes.location?.[frame] ?? null;
  const name = model.name(frame);
  const place = location === null ? null : locationName(model.tree.code, location);
  return place === null ? name : { ...name, file: place.file, line: place.line };
}

/** What is known of a frame, in lines. */
export function frameLines(model: FlameModel, frame: number, size: TipSize): readonly string[] {
  const { nodes, selection } = model.tree;
  const name = frameName(model, frame);
  const lines = [name.full, ...(name.file === '' ? [] : [fileLine(name)]), ...(name.modulePath === '' ? [] : [name.modulePath])];
  for (const key of tipCosts(model.cost, size)) {
    const column = nodes.total[key];
    if (column === undefined || !model.tells(key)) {
      continue;
    }
    const value = at(column, frame);
    const share = formatPercent(value, selection.totals[key] ?? 0);
    lines.push(`${costTitle(key, model.when)}: ${formatCostExact(key, value)}${frameError(model, frame, key)}, ${share}${changeText(model, frame, key)}`);
  }
  const action = foldAction(foldOf(nodes, frame));
  if (action !== '') {
    lines.push(action.replace('(u)', '(u, Shift+click)'));
  }
  const self = at(nodes.self[model.cost], frame);
  if (self > 0) {
    const error = nodes.self_errors === null ? 0 : at(nodes.self_errors[model.cost], frame);
    lines.push(`by itself: ${formatCost(model.cost, self)}${errorBeside(self, error)}`);
  }
  return size === 'some' ? [...lines, 'Shift: all costs'] : lines;
}

/**
 * The position of each module in the palette: executables first, so that the program's own code is
 * warm.
 */
function moduleOrder(names: readonly string[]): readonly number[] {
  const isLibrary = (name: string): boolean => /\.so(\.|$)/.test(name);
  const ranked = [...names.keys()].sort((a, b) => Number(isLibrary(names[a] ?? '')) - Number(isLibrary(names[b] ?? '')) || a - b);
  const order = names.map(() => 0);
  ranked.forEach((module, place) => (order[module] = place));
  return order;
}

export interface Swatch {
  readonly colour: string;
  readonly text: string;
}

/** Modules in the legend. */
const MOST_SWATCHES = 5;

/** What the colours of the frames mean. */
export function flameSwatches(model: FlameModel, isDark: boolean): readonly Swatch[] {
  const colours = palette(isDark);
  const { nodes, code } = model.tree;
  if (nodes.old_total !== null) {
    return [{ colour: colours.change(1), text: 'more than before' }, { colour: colours.change(-1), text: 'less than before' }];
  }
  const order = moduleOrder(code.modules.name);
  const used = new Set(nodes.function.map((index) => (index === null ? null : (code.functions.module[index] ?? null))));
  const modules = [...code.modules.name.keys()].filter((module) => used.has(module)).sort((a, b) => at(order, a) - at(order, b));
  const named = modules.slice(0, MOST_SWATCHES).map((module) => ({ colour: colours.frame(at(order, module), ''), text: code.modules.name[module] ?? '' }));
  const others = modules.length - named.length;
  return others === 0 ? named : [...named, { colour: 'transparent', text: `and ${formatCountOf(others, 'more module')}` }];
}

/** Colours from the page's variables; computed once for each answer and theme. */
export function flameLook(model: FlameModel, isDark: boolean): FlameLook {
  const colours = palette(isDark);
  const { nodes, code } = model.tree;
  const cache = new Map<number, string>();
  const order = moduleOrder(code.modules.name);
  const old = nodes.old_total?.[model.cost];
  const hasSearch = nodes.matched !== null;
  const byModule = (frame: number): string => {
    const index = nodes.function[frame] ?? -1;
    const known = cache.get(index);
    if (known !== undefined) {
      return known;
    }
    const module = index < 0 ? -1 : (code.functions.module[index] ?? -1);
    const colour = colours.frame(module < 0 ? -1 : at(order, module), code.functions.name[index] ?? '');
    cache.set(index, colour);
    return colour;
  };
  const byChange = (frame: number): string => {
    const now = model.value(frame);
    const before = at(old, frame);
    return colours.change((now - before) / Math.max(now, before, 1));
  };
  return {
    fill: old === undefined ? byModule : byChange,
    label: (frame) => foldedLabel(model.name(frame), foldOf(nodes, frame)),
    isDim: (frame) => hasSearch && at(nodes.matched ?? [], frame) === 0,
    background: cssVariable('--bg'),
    text: cssVariable('--flame-text'),
    dimFill: cssVariable('--flame-dim'),
    dimText: cssVariable('--flame-dim-text'),
    outline: cssVariable('--text'),
    font: '12px system-ui, sans-serif',
  };
}
