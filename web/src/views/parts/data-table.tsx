// A table of any length: rows have one height, and only the visible ones are in the document. A
// table with levels is a tree. Keys: arrows move, Right and Left open and close, Enter activates,
// Home and End, Page Up and Down, c copies.
//
// The table has the focus and names the selected row (aria-activedescendant): rows are added and
// removed while scrolling, but a focused element must stay.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { at, range } from '../../base/columns';
import { narrowHeading } from '../../model/cost';
import type { SavedColumn } from '../../model/table-text';
import { useNothing } from './nothing';
import { TableExport } from './table-export';
import { useKnows } from './unknown-costs';
import './data-table.css';

const ROW_PX = 26;
const BEYOND = 6;
/** As high as the words of an empty table. */
const EMPTY_ROWS = 2;
/** On paper there are all rows up to this one, not those in sight. */
const PRINTED_ROWS = 2000;

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly help?: string;
  readonly widthPx: number;
  /** In a table that would otherwise have to scroll sideways. */
  readonly narrowPx?: number;
  /** Left out of a table that would have to scroll sideways nevertheless: the highest first. */
  readonly spare?: number;
  /** Takes the remaining width. */
  readonly grows?: boolean;
  readonly numeric?: boolean;
  readonly sortable?: boolean;
  readonly cell: (row: number) => ComponentChildren;
  /** What CSV and TSV have of it. Nothing: its cells are controls. */
  readonly saved: readonly SavedColumn[];
}

/** The columns of a table that shows `rows` in this order. */
export function inOrder(columns: readonly Column[], rows: readonly number[]): readonly Column[] {
  return columns.map((column) => ({
    ...column,
    cell: (place) => column.cell(at(rows, place)),
    saved: column.saved.map((saved) => ({ ...saved, value: (place: number) => saved.value(at(rows, place)) })),
  }));
}

/** A column of texts: files have the same ones. */
export function textColumn(column: Omit<Column, 'cell' | 'saved'>, text: (row: number) => string, look: (text: string, row: number) => ComponentChildren = (shown) => shown): Column {
  return { ...column, cell: (row) => look(text(row), row), saved: [{ head: column.title, value: text }] };
}

export interface DataTableProps {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly count: number;
  readonly selected: number;
  readonly sortBy?: string;
  readonly onSort?: (key: string) => void;
  readonly onSelect: (row: number) => void;
  readonly onActivate?: (row: number) => void;
  /**
   * For a tree: the row's level from 0, whether it is open (null: it has no children), and the
   * function that toggles it.
   */
  readonly level?: (row: number) => number;
  readonly isOpen?: (row: number) => boolean | null;
  readonly onToggle?: (row: number, open: boolean) => void;
  readonly parentOf?: (row: number) => number;
  readonly empty?: string;
  /** Opens the context menu of a row. */
  readonly onMenu?: (row: number, place: { readonly x: number; readonly y: number }) => void;
  /** The selected row is what the page is about: the others step back. */
  readonly isAbout?: boolean;
}

function nextRow(key: string, props: DataTableProps, page: number): number | null {
  const { selected, count } = props;
  switch (key) {
    case 'ArrowDown':
      return Math.min(selected + 1, count - 1);
    case 'ArrowUp':
      return Math.max(selected - 1, 0);
    case 'PageDown':
      return Math.min(selected + page, count - 1);
    case 'PageUp':
      return Math.max(selected - page, 0);
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    default:
      return null;
  }
}

/** True if the key had an effect. */
function onKey(event: KeyboardEvent, props: DataTableProps, page: number): boolean {
  const { selected } = props;
  const row = nextRow(event.key, props, page);
  if (row !== null) {
    props.onSelect(row);
    return true;
  }
  if (selected < 0) {
    return false;
  }
  const open = props.isOpen?.(selected) ?? null;
  if (event.key === 'ArrowRight' && open === false) {
    props.onToggle?.(selected, true);
  } else if (event.key === 'ArrowRight' && open === true) {
    props.onSelect(Math.min(selected + 1, props.count - 1));
  } else if (event.key === 'ArrowLeft' && open === true) {
    props.onToggle?.(selected, false);
  } else if (event.key === 'ArrowLeft' && props.parentOf !== undefined) {
    props.onSelect(Math.max(props.parentOf(selected), 0));
  } else if (event.key === 'Enter' && props.onActivate !== undefined) {
    props.onActivate(selected);
  } else {
    return false;
  }
  return true;
}

/**
 * The selected row in full, with tabs between cells: titles where cells are truncated or rounded.
 */
function rowText(table: HTMLElement): string {
  const cells = table.querySelectorAll('.table-selected > .table-cell');
  return [...cells]
    .map((cell) => cell.querySelector('[title]')?.getAttribute('title')?.split('\n')[0] ?? cell.textContent ?? '')
    .join('\t')
    .trim();
}

/** "c" copies the selected row; Ctrl+C copies the selected text. */
function copyRow(event: KeyboardEvent, table: HTMLElement): boolean {
  if (event.key !== 'c' || event.ctrlKey || event.metaKey || event.altKey) {
    return false;
  }
  void navigator.clipboard.writeText(rowText(table));
  return true;
}

/** The menu of the row at the pointer; by the keyboard, of the selected one. */
function openMenu(event: MouseEvent, props: DataTableProps): void {
  const target = event.target instanceof Element ? event.target : null;
  const pointed = target?.closest('.table-body [role=row]') ?? null;
  const row = pointed ?? target?.querySelector('.table-selected') ?? null;
  if (props.onMenu === undefined || row === null || target?.closest('a, input') !== null) {
    return;
  }
  event.preventDefault();
  const index = Number(row.getAttribute('aria-rowindex')) - 2;
  const box = row.getBoundingClientRect();
  props.onSelect(index);
  props.onMenu(index, pointed === null ? { x: box.left + 40, y: box.bottom } : { x: event.clientX, y: event.clientY });
}

function Header(props: { readonly table: DataTableProps; readonly isNarrow: boolean }): JSX.Element {
  const { columns, sortBy, onSort } = props.table;
  return (
    <div role="row" class="table-row table-head">
      {columns.map((column) => {
        const isSorted = sortBy === column.key;
        const title = props.isNarrow ? narrowHeading(column.title) : column.title;
        return (
          <div
            key={column.key}
            role="columnheader"
            class={column.numeric === true ? 'table-cell table-numeric' : 'table-cell'}
            {...(isSorted ? { 'aria-sort': 'descending' as const } : {})}
          >
            {column.sortable === true && onSort !== undefined ? (
              <button type="button" class="table-sort" title={column.help ?? ''} onClick={() => onSort(column.key)}>
                {title}
                <span aria-hidden="true">{isSorted ? ' ▾' : ''}</span>
              </button>
            ) : (
              <span title={column.help ?? ''}>{title}</span>
            )}
          </div>
        );
      })}
    </div>
  );
}

/** Deep levels are indented less, so that their names keep their room. */
function indentPx(level: number): number {
  return 2 + 14 * Math.min(level, 8) + 5 * Math.min(Math.max(level - 8, 0), 24) + Math.min(Math.max(level - 32, 0), 100);
}

function Row(props: { readonly table: DataTableProps; readonly row: number; readonly id: string }): JSX.Element {
  const { table, row } = props;
  const open = table.isOpen?.(row) ?? null;
  const level = table.level?.(row);
  return (
    <div
      id={props.id}
      role="row"
      aria-rowindex={row + 2}
      aria-selected={row === table.selected}
      {...(level === undefined ? {} : { 'aria-level': level + 1 })}
      {...(open === null ? {} : { 'aria-expanded': open })}
      class={row === table.selected ? 'table-row table-selected' : 'table-row'}
      style={{ top: `${row * ROW_PX}px` }}
      onClick={() => table.onSelect(row)}
      onDblClick={() => table.onActivate?.(row)}
    >
      {table.columns.map((column, index) => (
        <div
          key={column.key}
          role="gridcell"
          class={column.numeric === true ? 'table-cell table-numeric' : 'table-cell'}
          style={index === 0 && level !== undefined ? { paddingLeft: `${indentPx(level)}px` } : {}}
        >
          {index === 0 && table.isOpen !== undefined ? (
            <span
              class="table-toggle"
              aria-hidden="true"
              onClick={(event) => {
                event.stopPropagation();
                if (open !== null) {
                  table.onToggle?.(row, !open);
                }
              }}
            >
              {open === null ? '' : open ? '▾' : '▸'}
            </span>
          ) : null}
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

function widthPx(column: Column, isNarrow: boolean): number {
  return isNarrow ? (column.narrowPx ?? column.widthPx) : column.widthPx;
}

function tracks(columns: readonly Column[], isNarrow: boolean): string {
  return columns
    .map((column) => (column.grows === true ? `minmax(${widthPx(column, isNarrow)}px, 1fr)` : `${widthPx(column, isNarrow)}px`))
    .join(' ');
}

function minWidthPx(columns: readonly Column[], isNarrow: boolean): number {
  return columns.reduce((sum, column) => sum + widthPx(column, isNarrow), 0);
}

/** The columns that there is room for. */
function fittingColumns(columns: readonly Column[], sortBy: string | undefined, availablePx: number): readonly Column[] {
  const spares = columns.filter((column) => column.spare !== undefined && column.key !== sortBy).sort((a, b) => (b.spare ?? 0) - (a.spare ?? 0));
  let fitting = columns;
  for (const spare of spares) {
    if (minWidthPx(fitting, true) > availablePx) {
      fitting = fitting.filter((column) => column !== spare);
    }
  }
  return fitting;
}

/** A row far away comes to the middle, the next one to the edge. */
function bringIntoView(element: HTMLElement, row: number): void {
  const y = row * ROW_PX;
  const inner = element.clientHeight - ROW_PX;
  const isAbove = y < element.scrollTop;
  if (!isAbove && y + ROW_PX <= element.scrollTop + inner) {
    return;
  }
  const gap = isAbove ? element.scrollTop - y : y + ROW_PX - element.scrollTop - inner;
  element.scrollTop = gap > 2 * ROW_PX ? y - inner / 2 : isAbove ? y : y + ROW_PX - inner;
}

function usePrinting(): boolean {
  const [isOn, setIsOn] = useState(false);
  useEffect(() => {
    const paper = matchMedia('print');
    const look = (): void => setIsOn(paper.matches);
    look();
    paper.addEventListener('change', look);
    return () => paper.removeEventListener('change', look);
  }, []);
  return isOn;
}

/** Scrolling draws new rows when it has gone so many further. */
const STEP_ROWS = 4;

/**
 * The rows in sight as elements. While the table is the same, as in scrolling, a row keeps its element, which preact
 * then does not compare again.
 */
function useRows(table: DataTableProps, given: DataTableProps, widthPx: number, id: string): (row: number) => JSX.Element {
  const kept = useRef<{ given: DataTableProps; widthPx: number; rows: Map<number, JSX.Element> }>({ given, widthPx, rows: new Map() });
  if (kept.current.given !== given || kept.current.widthPx !== widthPx) {
    kept.current = { given, widthPx, rows: new Map() };
  }
  const { rows } = kept.current;
  return (row) => {
    const known = rows.get(row);
    const element = known ?? <Row key={row} table={table} row={row} id={`${id}-${row}`} />;
    if (known === undefined) {
      rows.set(row, element);
    }
    return element;
  };
}

interface Viewport {
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export function DataTable(given: DataTableProps): JSX.Element {
  const knows = useKnows();
  const whole = { ...given, columns: given.columns.filter((column) => knows(column.key)) };
  const id = useId();
  const nothing = useNothing();
  const box = useRef<HTMLDivElement>(null);
  const [port, setPort] = useState<Viewport>({ top: 0, width: Infinity, height: 600 });
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return undefined;
    }
    const measure = (): void => {
      const top = Math.floor(element.scrollTop / (STEP_ROWS * ROW_PX)) * STEP_ROWS * ROW_PX;
      const next = { top, width: element.clientWidth, height: element.clientHeight };
      setPort((old) => (old.top === next.top && old.width === next.width && old.height === next.height ? old : next));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  const props = { ...whole, columns: fittingColumns(whole.columns, whole.sortBy, port.width) };
  const { selected, count } = props;
  useEffect(() => {
    const element = box.current;
    if (element === null || selected < 0) {
      return;
    }
    bringIntoView(element, selected);
  }, [selected]);
  const rowOf = useRows(props, given, port.width, id);
  const isPrinted = usePrinting();
  const first = isPrinted ? 0 : Math.max(0, Math.floor(port.top / ROW_PX) - BEYOND);
  const last = isPrinted ? Math.min(count, PRINTED_ROWS) : Math.min(count, Math.ceil((port.top + port.height) / ROW_PX) + STEP_ROWS + BEYOND);
  const visible = range(Math.max(last - first, 0)).map((offset) => first + offset);
  const isInSight = selected >= first && selected < last;
  const isNarrow = minWidthPx(props.columns, false) > port.width;
  return (
    <div class="table-frame" style={{ '--rows': String(count === 0 ? EMPTY_ROWS : count) }}>
      <div
        ref={box}
        class={`table${isNarrow ? ' table-narrow' : ''}${props.isAbout === true && selected >= 0 ? ' table-about' : ''}`}
        role={props.isOpen === undefined ? 'grid' : 'treegrid'}
        aria-label={props.label}
        aria-rowcount={count + 1}
        tabIndex={0}
        style={{ '--tracks': tracks(props.columns, isNarrow), '--min-width': `${minWidthPx(props.columns, isNarrow)}px` }}
        {...(isInSight ? { 'aria-activedescendant': `${id}-${selected}` } : {})}
        onContextMenu={(event) => openMenu(event, props)}
        onKeyDown={(event) => {
          const element = box.current;
          if (element !== null && event.target === element && (copyRow(event, element) || onKey(event, props, Math.floor(port.height / ROW_PX) - 2))) {
            event.preventDefault();
          }
        }}
      >
        <Header table={props} isNarrow={isNarrow} />
        <div class="table-body" role="rowgroup" style={{ height: `${count * ROW_PX}px` }}>
          {visible.map(rowOf)}
        </div>
        {count === 0 ? <p class="table-empty soft">{props.empty ?? nothing}</p> : null}
      </div>
      {count === 0 ? null : <TableExport table={whole} />}
    </div>
  );
}
