// The flame graph's canvas as a component: holds the window onto the layout, animates it to the
// zoomed frame, and converts input to actions. The canvas is as large as the visible part; the box
// around it scrolls.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { at } from '../base/columns';
import { drawFlame, ROW_PX, rowAt, rowTop, type FlameLook } from '../render/flame/draw';
import { hitFlame, neighbour, type Direction } from '../render/flame/hit';
import { listenFlame } from '../render/flame/input';
import { newSlice, sliceFlame } from '../render/flame/slice';
import { openFunction } from './parts/code-label';
import { frameLines, type FlameModel } from './flame-model';

const ZOOM_MS = 180;
/**
 * In a box below this height the tooltip has only the chosen cost: on a phone the others would not
 * fit.
 */
const SMALL_PX = 320;
/** Of a picture on paper. */
const MOST_PRINTED_PX = 8000;

export interface FlameCanvasProps {
  readonly model: FlameModel;
  readonly look: FlameLook;
  readonly isFlame: boolean;
  /** The frame that fills the width. */
  readonly zoomed: number;
  readonly onZoom: (frame: number) => void;
  readonly onStatus: (frame: number) => void;
  /** Open the context menu of a frame at a place of the window. */
  readonly onMenu: (frame: number, x: number, y: number) => void;
  /** Unfold the wrapper frames that a frame hides, or fold them again; -1: no frame. */
  readonly onUnfold: (frame: number) => void;
}

interface Pointed {
  readonly frame: number;
  readonly x: number;
  readonly y: number;
  readonly hasShift: boolean;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** Places a picture of the window `shown` so that it shows the window `wanted`; both in the layout's units. */
function stretch(context: CanvasRenderingContext2D, picture: HTMLCanvasElement, shown: Span, wanted: Span): void {
  const { width, height } = picture;
  const from = Math.max(wanted.from, shown.from);
  const to = Math.min(wanted.to, shown.to);
  const inPicture = width / (shown.to - shown.from);
  const onCanvas = width / (wanted.to - wanted.from);
  if (to > from) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(picture, (from - shown.from) * inPicture, 0, (to - from) * inPicture, height, (from - wanted.from) * onCanvas, 0, (to - from) * onCanvas, height);
  }
}

/**
 * The state between two paintings, changed in place: 60 paintings per second must not allocate. The
 * frames are painted only when they change. Hovering moves an element over the canvas, and a zoom
 * stretches one picture, so both take the same time for any number of frames.
 */
class FlamePainter {
  readonly slice = newSlice();
  from = 0;
  to = 1;
  selected = -1;
  /** All rows are painted, for paper. */
  isPrinted = false;
  private handle = 0;
  private aim: { from: number; to: number; fromOld: number; toOld: number; start: number; shown: Span } | null = null;
  private readonly picture = document.createElement('canvas');

  constructor(
    public props: FlameCanvasProps,
    readonly canvas: HTMLCanvasElement,
    readonly box: HTMLElement,
    private readonly outline: HTMLElement,
  ) {}

  aimAt(frame: number, animate: boolean): void {
    const from = at(this.props.model.layout.left, frame);
    const to = Math.max(at(this.props.model.layout.right, frame), from + 1);
    this.hover(-1);
    const isThere = from === this.from && to === this.to;
    if (!animate || isThere || matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.aim = null;
      this.from = from;
      this.to = to;
    } else {
      // Of the window before and the one after, the picture is of the one that contains the other.
      const old = { from: this.from, to: this.to };
      const isInwards = from >= old.from && to <= old.to;
      const shown = isInwards ? old : { from, to };
      this.from = shown.from;
      this.to = shown.to;
      this.paint();
      this.picture.width = this.canvas.width;
      this.picture.height = this.canvas.height;
      this.picture.getContext('2d')?.drawImage(this.canvas, 0, 0);
      this.from = old.from;
      this.to = old.to;
      this.aim = { from, to, fromOld: old.from, toOld: old.to, start: performance.now(), shown };
    }
    this.request();
  }

  /** Outline a frame; -1: none. */
  hover(frame: number): void {
    const { layout } = this.props.model;
    const scale = this.box.clientWidth / (this.to - this.from);
    const left = frame < 0 ? 0 : Math.max(at(layout.left, frame) - this.from, 0) * scale;
    const right = frame < 0 ? 0 : Math.min(at(layout.right, frame) - this.from, this.to - this.from) * scale;
    const { style } = this.outline;
    style.display = frame < 0 || this.aim !== null ? 'none' : 'block';
    style.left = `${left}px`;
    style.width = `${Math.max(right - left, 1)}px`;
    style.top = `${frame < 0 ? 0 : rowTop(at(layout.row, frame), layout.rows, this.props.isFlame) - this.box.scrollTop}px`;
  }

  request(): void {
    if (this.handle === 0) {
      this.handle = requestAnimationFrame((now) => {
        this.handle = 0;
        this.step(now);
      });
    }
  }

  stop(): void {
    cancelAnimationFrame(this.handle);
    this.handle = 0;
  }

  /** For paper the whole picture is painted at once: no frame follows before it is printed. */
  print(isPrinted: boolean): void {
    this.isPrinted = isPrinted;
    this.stop();
    this.paint();
  }

  private step(now: number): void {
    const { aim } = this;
    const t = aim === null ? 1 : Math.min(Math.max((now - aim.start) / ZOOM_MS, 0), 1);
    if (aim === null || t === 1) {
      this.from = aim?.from ?? this.from;
      this.to = aim?.to ?? this.to;
      this.aim = null;
      this.paint();
      return;
    }
    const eased = 1 - (1 - t) ** 3;
    this.from = aim.fromOld + (aim.from - aim.fromOld) * eased;
    this.to = aim.toOld + (aim.to - aim.toOld) * eased;
    const context = this.canvas.getContext('2d', { alpha: false });
    if (context !== null) {
      context.fillStyle = this.props.look.background;
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.fillRect(0, 0, this.canvas.width, this.canvas.height);
      stretch(context, this.picture, aim.shown, this);
    }
    this.request();
  }

  private paint(): void {
    const { layout } = this.props.model;
    const widthPx = this.box.clientWidth;
    const heightPx = this.isPrinted ? Math.min(layout.rows * ROW_PX, MOST_PRINTED_PX) : this.box.clientHeight;
    const ratio = devicePixelRatio;
    if (this.canvas.width !== Math.round(widthPx * ratio) || this.canvas.height !== Math.round(heightPx * ratio)) {
      this.canvas.width = Math.round(widthPx * ratio);
      this.canvas.height = Math.round(heightPx * ratio);
    }
    const context = this.canvas.getContext('2d', { alpha: false });
    if (context === null) {
      return;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scrollPx = this.isPrinted ? 0 : this.box.scrollTop;
    const first = rowAt(scrollPx, layout.rows, this.props.isFlame);
    const last = rowAt(scrollPx + heightPx, layout.rows, this.props.isFlame);
    const rows = { firstRow: Math.min(first, last), lastRow: Math.max(first, last) };
    sliceFlame(layout, { from: this.from, to: this.to, widthPx, ...rows }, this.slice);
    const canvas = { context, widthPx, heightPx, scrollPx, isFlame: this.props.isFlame };
    drawFlame(canvas, layout, this.slice, this.props.look, this.selected);
  }

  frameAt(x: number, y: number): number {
    const { layout } = this.props.model;
    const row = rowAt(y + this.box.scrollTop, layout.rows, this.props.isFlame);
    return hitFlame(layout, row, this.from + (x / this.box.clientWidth) * (this.to - this.from));
  }

  /** Select the frame for an arrow key, and scroll to it. */
  move(key: 'up' | 'down' | 'left' | 'right'): void {
    const deeper = this.props.isFlame ? 'up' : 'down';
    const ways: Readonly<Record<typeof key, Direction>> = {
      up: deeper === 'up' ? 'child' : 'parent',
      down: deeper === 'down' ? 'child' : 'parent',
      left: 'previous',
      right: 'next',
    };
    const { layout } = this.props.model;
    this.selected = this.selected < 0 ? this.props.zoomed : neighbour(layout, this.selected, ways[key]);
    const top = rowTop(at(layout.row, this.selected), layout.rows, this.props.isFlame);
    if (top < this.box.scrollTop) {
      this.box.scrollTop = top;
    } else if (top + ROW_PX > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + ROW_PX - this.box.clientHeight;
    }
    this.props.onStatus(this.selected);
    this.request();
  }
}

function Tooltip(props: { readonly model: FlameModel; readonly pointed: Pointed; readonly box: HTMLElement }): JSX.Element {
  const { pointed, box } = props;
  const right = pointed.x > box.clientWidth / 2;
  const below = pointed.y < box.clientHeight / 2;
  return (
    <div
      class="flame-tip"
      style={{
        [right ? 'right' : 'left']: `${(right ? box.clientWidth - pointed.x : pointed.x) + 14}px`,
        [below ? 'top' : 'bottom']: `${(below ? pointed.y : box.clientHeight - pointed.y) + 14}px`,
      }}
    >
      {frameLines(props.model, pointed.frame, pointed.hasShift ? 'all' : box.clientHeight < SMALL_PX ? 'one' : 'some').map((line, index) => (
        <div key={index} class={index === 0 ? 'flame-tip-name' : ''}>
          {line}
        </div>
      ))}
    </div>
  );
}

function listen(painter: FlamePainter, target: HTMLElement, point: (pointed: Pointed | null) => void): () => void {
  const open = (frame: number): void => {
    if (frame > 0) {
      openFunction(painter.props.model.name(frame));
    }
  };
  return listenFlame(target, {
    hover: (x, y, hasShift) => {
      const frame = painter.frameAt(x, y);
      painter.hover(frame);
      point(frame < 0 ? null : { frame, x, y, hasShift });
      if (frame >= 0) {
        painter.props.onStatus(frame);
      }
    },
    leave: () => {
      painter.hover(-1);
      point(null);
    },
    zoomAt: (x, y) => {
      const frame = painter.frameAt(x, y);
      if (frame >= 0) {
        painter.selected = frame;
        painter.request();
        painter.props.onZoom(frame);
      }
    },
    menuAt: (place, clientX, clientY) => {
      const frame = place === null ? painter.selected : painter.frameAt(place.x, place.y);
      if (frame > 0) {
        point(null);
        painter.props.onMenu(frame, clientX, clientY);
      }
    },
    move: (key) => painter.move(key),
    zoomSelected: () => painter.props.onZoom(Math.max(painter.selected, 0)),
    openSelected: () => open(painter.selected),
    unfoldAt: (x, y) => painter.props.onUnfold(painter.frameAt(x, y)),
    unfoldSelected: () => painter.props.onUnfold(painter.selected),
    reset: () => painter.props.onZoom(0),
  });
}

export function FlameCanvas(props: FlameCanvasProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const outline = useRef<HTMLSpanElement>(null);
  const painter = useRef<FlamePainter | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  useEffect(() => {
    if (box.current === null || canvas.current === null || outline.current === null) {
      return undefined;
    }
    const own = new FlamePainter(props, canvas.current, box.current, outline.current);
    painter.current = own;
    const request = (): void => {
      own.hover(-1);
      own.request();
    };
    const observer = new ResizeObserver(request);
    observer.observe(box.current);
    box.current.addEventListener('scroll', request, { passive: true });
    const silence = listen(own, canvas.current, setPointed);
    const paper = matchMedia('print');
    const print = (): void => own.print(paper.matches);
    paper.addEventListener('change', print);
    return () => {
      paper.removeEventListener('change', print);
      own.stop();
      observer.disconnect();
      silence();
    };
  }, []);
  if (painter.current !== null) {
    painter.current.props = props;
  }
  useEffect(() => painter.current?.request(), [props.look]);
  useEffect(() => {
    // A new layout is shown at once; within one layout the zoom is animated.
    painter.current?.aimAt(props.zoomed, false);
    setPointed(null);
    if (painter.current !== null) {
      painter.current.selected = -1;
    }
    if (box.current !== null) {
      box.current.scrollTop = props.isFlame ? box.current.scrollHeight : 0;
    }
  }, [props.model, props.isFlame]);
  useEffect(() => painter.current?.aimAt(props.zoomed, true), [props.zoomed]);
  return (
    <div class="flame-frame">
      <div ref={box} class="flame-box" data-testid="flame-box" tabIndex={-1}>
        <div class="flame-sticky">
          <canvas
            ref={canvas}
            class="flame-canvas"
            tabIndex={0}
            role="application"
            aria-label="Flame graph. Arrow keys move, Enter zooms, u unfolds wrapper frames, o opens the function, Escape zooms out."
          />
          <span ref={outline} class="flame-outline" data-testid="flame-outline" aria-hidden="true" />
        </div>
        <div class="flame-spacer" style={{ height: `${props.model.layout.rows * ROW_PX}px` }} />
      </div>
      {pointed !== null && box.current !== null && pointed.frame < props.model.layout.count ? (
        <Tooltip model={props.model} pointed={pointed} box={box.current} />
      ) : null}
    </div>
  );
}
